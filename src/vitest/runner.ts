/** Vitest's runner, or the project's own, with each call of test code guarded. See guard.ts. */
import { url } from 'node:inspector'
import { pathToFileURL } from 'node:url'
import { TestRunner } from 'vitest'
import { Guard } from './guard.ts'
import { type Settings, settingsVariable } from './settings.ts'

type Runner = InstanceType<typeof TestRunner>
type Suite = Parameters<Runner['onBeforeRunSuite']>[0]
type Test = NonNullable<ReturnType<typeof TestRunner.getCurrentTest>>
type Hook = (...args: unknown[]) => unknown

const { runner: given, importTimeout } = JSON.parse(process.env[settingsVariable]!) as Settings
const Base: typeof TestRunner =
  given === null
    ? TestRunner
    : ((await import(pathToFileURL(given).href)) as { default: typeof TestRunner }).default

// Under a debugger, a person pauses the test, which is no loop.
const guard = url() === undefined ? new Guard() : null
const hooksSeen = new WeakSet<Hook>()

/** The symbols under which hooks hold their timeouts, if they have any. */
const hookTimeouts = [Symbol.for('VITEST_CLEANUP_TIMEOUT'), Symbol.for('VITEST_AROUND_TIMEOUT')]
/** The minimum for a hook without a visible timeout: vitest's own timer is shorter, if it can fire. */
const hook_ms_least = 60_000

class GuardedRunner extends Base {
  override importFile(filepath: string, source: 'collect' | 'setup'): unknown {
    const load = (): unknown => super.importFile(filepath, source)
    return guarded(importTimeout, false, load, `The import of ${filepath}`, importAdvice)
  }

  override async onBeforeRunSuite(suite: Suite): Promise<void> {
    await super.onBeforeRunSuite?.(suite)
    const hooks = TestRunner.getSuiteHooks(suite) as unknown as Record<string, Hook[] | undefined> | undefined
    for (const [name, list] of Object.entries(hooks ?? {})) {
      if (list === undefined || name.startsWith('around')) continue
      for (let at = 0; at < list.length; at++)
        list[at] = guardedHook(list[at]!, this.config.hookTimeout, name)
    }
  }

  async runTask(test: Test): Promise<void> {
    const inner = (Base.prototype as { runTask?: (test: Test) => Promise<void> }).runTask
    const run = (): unknown =>
      inner === undefined ? (TestRunner.getTestFn(test) as () => unknown)() : inner.call(this, test)
    await guarded(test.timeout, test.concurrent === true, run, 'Test', timeoutAdvice)
  }
}

function guardedHook(hook: Hook, hookTimeout: number, name: string): Hook {
  if (hooksSeen.has(hook)) return hook
  const own = hookTimeouts
    .map(key => (hook as never as Record<symbol, unknown>)[key])
    .find(timeout => typeof timeout === 'number')
  const limit_ms = own ?? (name.startsWith('before') ? hookTimeout : Math.max(hookTimeout, hook_ms_least))
  const wrapped: Hook = (...args) => guarded(limit_ms, false, () => hook(...args), 'Hook', timeoutAdvice)
  Object.assign(wrapped, hook)
  hooksSeen.add(wrapped)
  return wrapped
}

const timeoutAdvice = 'If it only needs longer, give it a longer timeout.'
const importAdvice = 'If it only needs longer, give heddlePool() a longer importTimeout.'

function guarded(
  limit_ms: number,
  concurrent: boolean,
  run: () => unknown,
  what: string,
  advice: string,
): unknown {
  if (guard === null || !(limit_ms > 0 && limit_ms < 0x7fff_ffff)) return run()
  return guard.call(limit_ms, concurrent, run, stack => {
    const where =
      stack === null
        ? 'was interrupted.'
        : `was ended where it stood, without its finally.${stack.length === 0 ? ' It was inside native code.' : ''}`
    const error = new Error(
      `${what} timed out in ${limit_ms}ms.\nIt kept its thread all that time, and ${where} ${advice}`,
    )
    if (stack !== null) error.stack = [`Error: ${error.message}`, ...stack].join('\n')
    return error
  })
}

export default GuardedRunner
