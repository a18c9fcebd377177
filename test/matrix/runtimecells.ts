import { type Cell, programFiles, type Tools } from './cell.ts'

const files = (): Record<string, string> => ({
  'package.json': '{ "private": true, "type": "module", "dependencies": { "heddle": "*" } }',
  ...programFiles('typescript'),
  // Deno has no flag that preloads a package: the program imports it first.
  'src/start.ts': "import 'heddle/register'\nawait import('./main.ts')\n",
})

const deno = (project: string, tools: Tools, file: string): Promise<string> =>
  tools.command(project, tools.node(26), [tools.bin('deno'), 'run', '--allow-all', '--no-lock', file])

const bun = (project: string, tools: Tools, ...args: string[]): Promise<string> =>
  tools.command(project, tools.bin('bun'), args)

/** Tasks that end in every way: by themselves, with their CPU, and not at all. */
const endings = `
import { Kernel } from 'heddle'

const kernel = await Kernel.boot({ cpus: 2 })
const work = await kernel.import<typeof import('./endings.ts')>(new URL('./endings.ts', import.meta.url))
const said: Record<string, unknown> = {}
const back = new Promise(resolve => kernel.on('restart', resolve))
said.exits = await kernel.spawn(work.exits).catch((error: Error) => error.name)
await back
said.fails = await kernel.spawn(work.fails).catch((error: Error) => error.name + ': ' + error.message)
const began = new Int32Array(new SharedArrayBuffer(4))
const plain = kernel.spawn(work.plain, [began])
while (Atomics.load(began, 0) === 0) await new Promise(resolve => setTimeout(resolve, 5))
plain.kill('now')
said.plain = await plain.catch((error: Error) => error.message)
said.after = await kernel.spawn(work.one)
await kernel.close()
const expected = { exits: 'CpuLostError', fails: 'RangeError: wrong', plain: PLAIN, after: 1 }
console.log(JSON.stringify({ said, expected }))
process.exit(0)
`

const endingsWork = `
export function exits(): void { process.exit(3) }
export function fails(): void { throw new RangeError('wrong') }
export function one(): number { return 1 }
/** No safepoint; it ends after two seconds, long after its grace period. */
export function plain(began: Int32Array): string {
  Atomics.store(began, 0, 1)
  const until = performance.now() + 2000
  while (performance.now() < until);
  return 'ended by itself'
}
`

const endingFiles = (plain: string): Record<string, string> => ({
  ...files(),
  'src/endings.ts': endingsWork,
  'src/main.ts': endings.replace('PLAIN', JSON.stringify(plain)),
})

/** Deno and Bun, which identify themselves as Node. */
export const runtimeCells: readonly Cell[] = [
  {
    name: 'deno, TypeScript',
    quick: true,
    files,
    run: (project, tools) => deno(project, tools, 'src/start.ts'),
  },
  {
    name: 'deno, tasks that end in every way',
    // Deno cannot terminate a worker that computes: the task ends by itself.
    files: () => endingFiles('ended by itself'),
    run: (project, tools) => deno(project, tools, 'src/main.ts'),
  },
  {
    name: 'bun, TypeScript',
    quick: true,
    files,
    run: (project, tools) => bun(project, tools, '--preload', 'heddle/register', 'src/main.ts'),
  },
  {
    name: 'bun, tasks that end in every way',
    files: () =>
      endingFiles('task plain was killed, did not end within the grace period, and lost its CPU: now'),
    run: (project, tools) => bun(project, tools, 'src/main.ts'),
  },
]
