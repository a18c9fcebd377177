/**
 * Warns when a function that begins with 'use task' runs without having been compiled: nothing can preempt
 * it. Once for each function.
 */

/** The public part of this thread's loader (compiler/loading/loader.ts). */
interface LoaderFace {
  include(patterns: readonly string[]): void
  hasTold(name: string): boolean
  warnOnce(key: string, message: string, code: string): void
  /** Not in earlier versions: a program may have two. */
  warnOfUnmatched?(url: string): void
  findSyntaxError(url: string): string | null
}

const loaderSymbol: unique symbol = Symbol.for('heddle.loader') as never

/** The loader of this thread; undefined: it has none. */
export function loaderFace(): LoaderFace | undefined {
  return (globalThis as { [loaderSymbol]?: LoaderFace })[loaderSymbol]
}

type AnyFunction = (...args: any[]) => unknown

const told = new WeakSet<AnyFunction>()

/** `'use task'`, or with a lowering behind it, as the first statement, after other directives at most. */
const marked =
  /[{]\s*(?:(?:\/\/[^\n]*\n|\/\*[^]*?\*\/|'[^'\n]*'|"[^"\n]*")\s*;?\s*)*?['"]use task(?: \w+)?['"]/

/** Whether the text of a function says 'use task'. */
export function saysTask(fn: AnyFunction): boolean {
  const text = Function.prototype.toString.call(fn)
  const at = text.indexOf('use task')
  return at >= 0 && marked.test(text.slice(0, at + 24))
}

interface Globals {
  readonly process?: {
    readonly versions?: { readonly node?: string; readonly bun?: string; readonly deno?: string }
    readonly argv?: readonly string[]
    emitWarning?(message: string, options: { type: string; code: string }): void
  }
}

const { process } = globalThis as unknown as Globals

/**
 * Called for a function without a resumable form that becomes a coroutine or a task. False: the function is
 * new here and does not say 'use task'; its module may.
 */
export function tellUncompiled(fn: AnyFunction, name: string = fn.name): boolean {
  if (told.has(fn)) return true
  told.add(fn)
  if (!saysTask(fn)) return false
  if (loaderFace()?.hasTold(fn.name || name)) return true
  warnUncompiled(notCompiled(name || 'a function', 'it', 'no loader'), `uncompiled ${name}`)
  return true
}

/**
 * For one of several threads that all load a function without a resumable form. If this thread has no loader,
 * returns the warning, which is given once for all threads. Null: no warning.
 */
export function uncompiledText(fn: AnyFunction, name: string): string | null {
  if (loaderFace() !== undefined || told.has(fn) || !saysTask(fn)) return null
  told.add(fn)
  return notCompiled(name || 'a function', 'it', 'no loader')
}

/** `which` identifies the warning, so that not every thread of the process repeats it. */
export function warnUncompiled(message: string, which: string): void {
  const loader = loaderFace()
  if (loader !== undefined) loader.warnOnce(which, message, 'HEDDLE_NOT_COMPILED')
  else if (process?.emitWarning === undefined) console.warn(message)
  else process.emitWarning(message, { type: 'HeddleWarning', code: 'HEDDLE_NOT_COMPILED' })
}

/**
 * The warning about a marked function or module. `missing`: which of the two tools is missing.
 */
export function notCompiled(what: string, them: string, missing: 'no loader' | 'no plugin'): string {
  return `${what} says 'use task' and was not compiled, so nothing can preempt ${them}: ${reason(missing)}`
}

function reason(missing: 'no loader' | 'no plugin'): string {
  const versions = process?.versions
  const plugin = 'build it with the plugin (heddle/vite, /rollup, /rolldown, /webpack, /rspack or /esbuild)'
  if (versions?.node === undefined) return `no plugin has compiled it. ${capital(plugin)}`
  const program = process?.argv?.[1]?.replace(/^.*[\\/]/, '') ?? 'main.ts'
  if (versions.bun !== undefined) {
    return `Bun's loader takes the modules of the program itself, after \`bun --preload heddle/register ${program}\`. Start it so, or ${plugin}`
  }
  if (missing === 'no plugin')
    return `no loader reads it there, and no plugin has compiled it. ${capital(plugin)}`
  if (loaderFace() === undefined) {
    // A CPU of the package itself has the loader.
    if (/node-cpu\.[jt]s$/.test(program)) {
      return `this is a bundle, in which no loader reads modules. Import it by new URL('./work.js', import.meta.url), which the plugin sees; and ${plugin}`
    }
    if (versions.deno !== undefined) {
      return `this thread has no loader. Let the program begin with \`import 'heddle/register'\`, or ${plugin}`
    }
    return `this thread has no loader. Start the program with \`npx heddle run ${program}\` or \`node --import heddle/register ${program}\`, or ${plugin}`
  }
  return `another tool has loaded its module (vitest, a bundler: add the plugin heddle/vite; tsx, ts-node: start with \`npx heddle run\`, which takes TypeScript as it is), or it was loaded before the loader, or made by \`new Function\`, \`eval\` or \`vm\`, which no loader sees`
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
