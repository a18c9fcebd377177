/** `heddle/vitest`: a pool for vitest in which a test that loops for ever is stopped by its timeout. */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import {
  ForksPoolWorker,
  type PoolOptions,
  type PoolRunnerInitializer,
  type WorkerRequest,
} from 'vitest/node'
import { checkTime } from '../coroutine/core/blocking.ts'
import { type Known, refuseUnknown } from '../coroutine/core/knownoptions.ts'
import { type Settings, settingsVariable } from './settings.ts'

export interface HeddlePoolOptions {
  /**
   * How long the import of a test file and its modules may block its thread, in milliseconds. Default:
   * 60,000.
   */
  importTimeout?: number
}

const poolOptions: Known<HeddlePoolOptions> = { importTimeout: true }
const import_ms = 60_000

/**
 * Vitest's `forks` pool with a watchdog thread in each process. A test, a hook or an import that never
 * returns to the event loop fails at its timeout, with the line where it was, and later tests run. Use
 * `pool: heddlePool()` in the `test` part of the configuration.
 */
export function heddlePool(options: HeddlePoolOptions = {}): PoolRunnerInitializer {
  refuseUnknown('heddlePool(options)', options, poolOptions)
  const { importTimeout = import_ms } = options
  checkTime('importTimeout', importTimeout)
  return { name: 'heddle', createPoolWorker: pool => new WatchedWorker(pool, importTimeout) }
}

const runner = fileURLToPath(new URL('./runner.ts', import.meta.url))

class WatchedWorker extends ForksPoolWorker {
  override readonly name: string = 'heddle'

  constructor(options: PoolOptions, importTimeout: number) {
    const { runner: given } = options.project.config
    if (given !== undefined && !existsSync(given)) {
      throw new TypeError(`heddlePool: test.runner is ${given}, which is not a file; give the path of one`)
    }
    const settings: Settings = { runner: given ?? null, importTimeout }
    super({
      ...options,
      // A terminated execution leaves Node's count of asynchronous contexts one too high. Unchecked, that is
      // harmless.
      execArgv: [...options.execArgv, '--no-force-async-hooks-checks'],
      env: { ...options.env, [settingsVariable]: JSON.stringify(settings) },
    })
  }

  override send(message: WorkerRequest): void {
    if (message.type !== 'start') {
      super.send(message)
      return
    }
    const { context } = message
    super.send({ ...message, context: { ...context, config: { ...context.config, runner } } })
  }
}
