// Runs the installed package as a user's program would, on the Node that runs this file: imports every entry
// point, uses the arena and a simulated machine from a module of its own, and boots real CPUs with the
// command. node test/smoke/main.mjs <folder in which heddle is installed>
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const consumer = process.argv[2]
const installed = join(consumer, 'node_modules', 'heddle')
const manifest = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'))
const program = join(consumer, 'program.mjs')
// Entries for bundlers need a bundler; register changes how modules load.
const optional =
  /^\.\/(vite|vitest|rollup|rolldown|webpack|rspack|esbuild|(checker\/)?register|package\.json)$/
const names = Object.keys(manifest.exports)
  .filter(name => !optional.test(name))
  .map(name => `heddle${name.slice(1)}`)
writeFileSync(
  program,
  `export const entries = [${names.map(name => `['${name}', await import('${name}')]`).join(', ')}]
   export { Arena, ArenaPlan, Slab, KernelThread } from 'heddle/arena'
   export { SimulatedMachine, reserveMachine, STEP } from 'heddle/machine'`,
)
const { entries, Arena, ArenaPlan, Slab, KernelThread, SimulatedMachine, reserveMachine, STEP } =
  await import(pathToFileURL(program).href)
for (const [name, module] of entries) {
  assert.ok(Object.keys(module).length > 0 || name.endsWith('runtime'), `${name} exports something`)
}

const plan = new ArenaPlan()
const region = reserveMachine(plan, 2)
const slab = new Slab(plan, { name: 'records', capacity: 2, words: 4, option: 'records' })
const arena = Arena.create(plan)
slab.initialize(arena.i32)
const thread = new KernelThread(arena, 64)
const first = slab.allocate(thread)
slab.allocate(thread)
assert.throws(() => slab.allocate(thread), { name: 'ArenaFullError', message: /records/ })
slab.free(arena.i32, first)

const order = []
const machine = new SimulatedMachine({
  arena,
  region,
  seed: 7,
  *program(cpu) {
    for (let i = 0; i < 3; i++) {
      order.push(cpu.id)
      yield STEP
    }
  },
})
machine.startAll()
assert.equal(machine.run(), 'idle')
assert.equal(order.length, 6)

const said = execFileSync(process.execPath, [join(installed, manifest.bin.heddle), 'selftest'], {
  encoding: 'utf8',
})
assert.match(said, /all good/)
console.log(`${process.version}: ${names.length} entry points, a simulated machine and the self-test work`)
