import { replaceClocks } from './clock.ts'
import { EXEMPT, type Execution } from './execution.ts'
import type { NodeHost } from './host.ts'
import { VirtualPort } from './ports.ts'
import { refuseFunctions, refuseResource } from './refusals.ts'
import { Replacements } from './replacements.ts'
import { Timers, type WaitOptions } from './timers.ts'

/**
 * While executions run, timers, clocks, ports and random numbers of Node are replaced by virtual ones. An
 * execution runs inside one turn of the event loop, so only the program under check uses them.
 */
export class Environment {
  private readonly host: NodeHost
  private readonly replacements = new Replacements()
  private execution: Execution | undefined
  private timers: Timers | undefined

  constructor(host: NodeHost, random: readonly number[] | undefined) {
    this.host = host
    const running = (): Execution => this.running
    this.replaceTimers()
    this.replaceJobs()
    this.replaceSignals()
    this.replaceHarmless()
    replaceClocks(this.replacements, () => (this.isExempt ? undefined : this.running))
    refuseFunctions(this.replacements, running, random)
  }

  /**
   * Runs the body with the replacements, in a turn of the event loop of its own. Rejects with `Endless` if
   * the body does not return in time. Then no `finally` inside it has run, so the replacements are removed
   * here, outside.
   */
  async within<T>(patience: number, body: () => T): Promise<T> {
    const { syncBuiltinESMExports } = process.getBuiltinModule('node:module')
    const refused: { unref?: unknown }[] = []
    const hook = this.host.resources((type, resource) => {
      if (this.execution === undefined || this.isExempt) return
      refuseResource(this.execution, type)
      refused.push(resource)
    })
    const leave = (): void => {
      hook.disable()
      this.execution = undefined
      this.timers = undefined
      this.replacements.remove()
      syncBuiltinESMExports()
      // A resource that exists cannot be undone, but it must not keep the process alive.
      for (const resource of refused) if (typeof resource.unref === 'function') resource.unref()
    }
    return await this.host.slice(
      patience,
      () => {
        this.replacements.install()
        syncBuiltinESMExports()
        hook.enable()
        return body()
      },
      leave,
    )
  }

  /** From this call on the replacements serve this execution. */
  enter(execution: Execution): void {
    this.execution = execution
    this.timers = new Timers(execution)
  }

  /**
   * Whether the running code belongs to the console, or was queued by it. The resources that it starts and
   * the times that it reads are not part of the program.
   */
  private get isExempt(): boolean {
    return this.host.context.getStore() === EXEMPT
  }

  private get running(): Execution {
    if (this.execution === undefined) throw new Error('no execution runs')
    return this.execution
  }

  private get clockwork(): Timers {
    if (this.timers === undefined) throw new Error('no execution runs')
    return this.timers
  }

  private replaceTimers(): void {
    const { replacements } = this
    const modules = {
      plain: process.getBuiltinModule('node:timers'),
      promises: process.getBuiltinModule('node:timers/promises'),
    }
    const { promisify } = process.getBuiltinModule('node:util')
    const setTimeout = (callback: unknown, delay: unknown, ...args: unknown[]): unknown =>
      this.clockwork.start('timeout', callback, delay, args)
    const setInterval = (callback: unknown, delay: unknown, ...args: unknown[]): unknown =>
      this.clockwork.start('interval', callback, delay, args)
    const setImmediate = (callback: unknown, ...args: unknown[]): unknown =>
      this.clockwork.start('immediate', callback, 0, args)
    const wait = (delay?: unknown, value?: unknown, options?: WaitOptions): Promise<unknown> =>
      this.clockwork.wait('timeout', delay, value, options)
    const soon = (value?: unknown, options?: WaitOptions): Promise<unknown> =>
      this.clockwork.wait('immediate', 0, value, options)
    const every = (delay?: unknown, value?: unknown, options?: WaitOptions): AsyncGenerator<unknown> =>
      this.clockwork.every(delay, value, options)
    Object.defineProperty(setTimeout, promisify.custom, { value: wait })
    Object.defineProperty(setImmediate, promisify.custom, { value: soon })
    for (const owner of [globalThis, modules.plain]) {
      replacements.add(owner, 'setTimeout', setTimeout)
      replacements.add(owner, 'setInterval', setInterval)
      replacements.add(owner, 'setImmediate', setImmediate)
      for (const name of ['clearTimeout', 'clearInterval', 'clearImmediate'] as const) {
        const real = globalThis[name] as (timer: unknown) => void
        replacements.add(owner, name, (timer: unknown) => {
          if (!this.clockwork.clear(timer)) real(timer)
        })
      }
    }
    replacements.add(modules.promises, 'setTimeout', wait)
    replacements.add(modules.promises, 'setImmediate', soon)
    replacements.add(modules.promises, 'setInterval', every)
    const { scheduler } = modules.promises
    replacements.add(scheduler, 'wait', (delay: unknown, options?: WaitOptions) =>
      wait(delay, undefined, options),
    )
    replacements.add(scheduler, 'yield', () => soon())
  }

  /** Microtasks and ticks keep the order of the language and of Node; their errors are recorded. */
  private replaceJobs(): void {
    const realQueue = queueMicrotask
    const realTick = process.nextTick
    const guarded = (callback: unknown, args: readonly unknown[]): (() => void) | undefined => {
      if (typeof callback !== 'function') return undefined
      return () => {
        try {
          callback(...args)
        } catch (error) {
          this.running.uncaught(error, 'uncaught exception')
        }
      }
    }
    this.replacements.add(globalThis, 'queueMicrotask', (callback: unknown) =>
      realQueue(guarded(callback, []) ?? (callback as () => void)),
    )
    this.replacements.add(process, 'nextTick', (callback: unknown, ...args: unknown[]) =>
      Reflect.apply(realTick, process, [guarded(callback, args) ?? callback]),
    )
    const emit = process.emit as (...args: unknown[]) => boolean
    this.replacements.add(process, 'emit', (name: unknown, ...args: unknown[]): boolean => {
      if (name === 'unhandledRejection' || name === 'uncaughtException') {
        this.execution?.uncaught(
          args[0],
          name === 'uncaughtException' ? 'uncaught exception' : 'unhandled rejection',
        )
        return true
      }
      // A rejection that is handled late has already been reported as unhandled.
      return name === 'rejectionHandled' ? true : Reflect.apply(emit, process, [name, ...args])
    })
  }

  private replaceSignals(): void {
    this.replacements.add(AbortSignal, 'timeout', (delay: number) => {
      const controller = new AbortController()
      const reason = (): DOMException =>
        new DOMException('The operation was aborted due to timeout', 'TimeoutError')
      this.clockwork.start('timeout', () => controller.abort(reason()), delay, [])
      return controller.signal
    })
    const running = (): Execution => this.running
    class VirtualChannel {
      readonly port1: VirtualPort
      readonly port2: VirtualPort

      constructor() {
        const { port1, port2 } = VirtualPort.pair(running())
        this.port1 = port1
        this.port2 = port2
      }
    }
    const workers = process.getBuiltinModule('node:worker_threads')
    for (const owner of [globalThis, workers]) {
      this.replacements.add(owner, 'MessageChannel', VirtualChannel)
      this.replacements.add(owner, 'MessagePort', VirtualPort)
    }
  }

  private replaceHarmless(): void {
    const quietly = (owner: object, name: string): void => {
      const real = (owner as Record<string, unknown>)[name]
      if (typeof real !== 'function') return
      const { context } = this.host
      this.replacements.add(owner, name, function (this: unknown, ...args: unknown[]) {
        return context.run(EXEMPT, () => Reflect.apply(real, this, args) as unknown)
      })
    }
    for (const name of Object.keys(console)) quietly(console, name)
    // Older versions of Node send the value through a port of their own.
    quietly(globalThis, 'structuredClone')
    quietly(process.stdout, 'write')
    quietly(process.stderr, 'write')
  }
}
