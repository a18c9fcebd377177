/** Runs one test in one mode, in a given realm. */
import { buildSync } from 'esbuild'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import vm from 'node:vm'
import { compile } from '../../src/compiler/compile.ts'
import { withStops } from './stops.ts'
import type { Test } from './tests.ts'

/**
 * How a test is run. All modes but the first two are compiled.
 *   plain              as written, inside a function: a failure here counts in no mode
 *   plain-stops        the same with calls that would suspend before each statement and around each literal
 *   …-plain            compiled, and called as an ordinary function
 *   …-run              as a coroutine without preemption
 *   …-preempted        as a coroutine that is preempted at every safepoint
 *   …-stops            as a coroutine that suspends before each statement and at each literal
 */
export const modes = [
  'frames-plain',
  'frames-run',
  'frames-preempted',
  'frames-stops',
  'generator-plain',
  'generator-run',
  'generator-preempted',
  'generator-stops',
] as const

export type Mode = (typeof modes)[number]
export type Baseline = 'plain' | 'plain-stops'

const time_ms_most = 10_000

let realmScript: vm.Script | null = null

function runtimeScript(): vm.Script {
  if (realmScript === null) {
    const { outputFiles } = buildSync({
      entryPoints: [fileURLToPath(new URL('./realm.ts', import.meta.url))],
      bundle: true,
      write: false,
      format: 'iife',
      globalName: '__heddle',
      target: 'esnext',
    })
    realmScript = new vm.Script(`(() => { ${outputFiles[0]!.text}; return __heddle })()`, {
      filename: 'realm.js',
    })
  }
  return realmScript
}

const harness = new Map<string, vm.Script>()

function harnessScript(suite: string, name: string): vm.Script {
  let script = harness.get(name)
  if (script === undefined) {
    script = new vm.Script(readFileSync(join(suite, 'harness', name), 'utf8'), { filename: name })
    harness.set(name, script)
  }
  return script
}

/** Thrown when a test cannot be compiled: a defect of the compiler. */
class CompilerFailed extends Error {}

function wrapped(test: Test): string {
  return `'use task'\nexports.main = function () {${test.strict ? "'use strict';" : ''}${test.source}\n}\n`
}

/** Modes that differ only in how the program is called share its text. */
let last: { test: Test; kind: string; text: string | null } | null = null

function programOf(test: Test, mode: Mode | Baseline): string | null {
  const kind = mode.replace(/-(?:plain|run|preempted)$/, '')
  if (last?.test !== test || last.kind !== kind) last = { test, kind, text: textOf(test, mode) }
  return last.text
}

/** The program of the mode, or null if there is none: code that stays plain, such as `eval`, is not run. */
function textOf(test: Test, mode: Mode | Baseline): string | null {
  const stops = mode.endsWith('stops')
  const source = stops ? withStops(wrapped(test), '__heddle_stop') : wrapped(test)
  if (source === null || mode === 'plain' || mode === 'plain-stops') return source
  const lowering = mode.startsWith('frames') ? 'frames' : 'generator'
  const { code, diagnostics, stats } = compile(source, 'test.cjs', { lowering, sourcemap: false, strip: 1 })
  const failed = diagnostics.find(({ code: kind, severity }) => kind === 'internal' || severity === 'error')
  if (failed !== undefined) throw new CompilerFailed(failed.message)
  const isCompiled = stats.some(({ line, form }) => line === 2 && form === 'twin')
  return isCompiled ? code : null
}

/** A global object with the suite's harness and the runtime of compiled code, for one variant of a test. */
export class Realm {
  readonly global: any
  readonly heddle: any
  readonly ended: unknown[] = []

  constructor(suite: string, test: Test) {
    this.global = globalOf(suite, test, message => this.ended.push(message))
    this.heddle = runtimeScript().runInContext(this.global)
    this.global.__heddle_stop = this.heddle.stop
  }
}

function globalOf(suite: string, test: Test, done: (message: unknown) => void): any {
  // An ordinary global object: a proxied one would be slower, and differ from the language.
  const context = vm.createContext(vm.constants.DONT_CONTEXTIFY as never)
  const global = globalScript.runInContext(context)
  global.print = done
  global.performance = performance
  global.$262 = {
    global,
    gc: () => {},
    createRealm: () => globalOf(suite, { ...test, includes: [] }, done).$262,
    detachArrayBuffer: (buffer: ArrayBuffer) => structuredClone(buffer, { transfer: [buffer] }),
    evalScript: (text: string) => vm.runInContext(text, context),
  }
  for (const name of ['assert.js', 'sta.js', 'doneprintHandle.js', ...test.includes]) {
    harnessScript(suite, name).runInContext(context)
  }
  return global
}

const globalScript = new vm.Script('globalThis')
const moduleScript = new vm.Script('({ exports: {} })')
const callScript = new vm.Script('__heddle_call()')

/**
 * Why the test fails in this mode; null when it passes, undefined when there is nothing to run. The realm may
 * have run other modes of the same variant: a failure is repeated in a new realm.
 */
export async function execute(
  realm: Realm,
  test: Test,
  mode: Mode | Baseline,
): Promise<string | null | undefined> {
  let text: string | null
  try {
    text = programOf(test, mode)
  } catch (error) {
    return `compiler: ${String(error)}`
  }
  if (text === null) return undefined
  const { global, heddle, ended } = realm
  ended.length = 0
  try {
    const module = moduleScript.runInContext(global)
    const make = new vm.Script(`(function (module, exports, require) {${text}\n})`, { filename: 'test.cjs' })
    const way =
      /-(?:run|stops)$/.test(mode) && !mode.startsWith('plain')
        ? 'run'
        : /preempted/.test(mode)
          ? 'preempted'
          : 'plain'
    make.runInContext(global)(module, module.exports, () => heddle.runtime)
    global.__heddle_call = () => heddle.drive(module.exports.main, way)
    callScript.runInContext(global)
  } catch (error) {
    const name = nameOf(error)
    if (test.throws !== null) return name === test.throws ? null : `threw ${describe(error)}`
    return `threw ${describe(error)}`
  }
  if (test.throws !== null) return `threw nothing, instead of a ${test.throws}`
  if (!test.isAsync) return null
  const until = Date.now() + time_ms_most
  while (ended.length === 0) {
    if (Date.now() > until) return 'never called $DONE'
    await new Promise(resolve => setImmediate(resolve))
  }
  return ended[0] === 'Test262:AsyncTestComplete' ? null : String(ended[0])
}

function nameOf(error: any): string {
  try {
    return String(error?.constructor?.name ?? error?.name)
  } catch {
    return 'an error that cannot be read'
  }
}

function describe(error: any): string {
  try {
    return `${nameOf(error)}: ${String(error?.message ?? error)}`.slice(0, 300)
  } catch {
    return 'an error that cannot be read'
  }
}
