import { CheckError } from './errors.ts'
import type { Memory } from './memory.ts'
import { AWAIT, KIND_NAMES, LOAD } from './operations.ts'
import { isShared, pending, siteName } from './runtime.ts'

/**
 * While a check runs, some globals are not themselves:
 *   - `SharedArrayBuffer` gives the same buffers, zeroed, in every execution, so that locations keep their names;
 *   - `Atomics` refuses shared memory: instrumented code never calls it for that, so it was code that the compiler did not see;
 *   - clocks, randomness and timers refuse: the same schedule must always run the same way.
 * A check runs synchronously, so nobody else meets them.
 */
export class Guards {
  private readonly memory: Memory
  private readonly restore: (() => void)[] = []
  /** Whether the set-up runs: it may use Atomics on its own memory, but no clock. */
  inSetup = false

  constructor(memory: Memory) {
    this.memory = memory
  }

  install(): void {
    this.guardSharedArrayBuffer()
    this.guardAtomics()
    this.guardNondeterminism()
  }

  remove(): void {
    while (this.restore.length > 0) this.restore.pop()?.()
  }

  private replace(owner: object, name: string, value: unknown): void {
    const descriptor = Object.getOwnPropertyDescriptor(owner, name)
    if (descriptor === undefined || !descriptor.configurable) return
    Object.defineProperty(owner, name, {
      value,
      writable: true,
      configurable: true,
      enumerable: descriptor.enumerable,
    })
    this.restore.push(() => Object.defineProperty(owner, name, descriptor))
  }

  private get active(): boolean {
    return this.inSetup || pending.current >= 0
  }

  private guardSharedArrayBuffer(): void {
    const active = (): boolean => this.active
    const { memory } = this
    const Real = SharedArrayBuffer
    function Pooled(length?: unknown, options?: { maxByteLength?: number }): SharedArrayBuffer {
      if (new.target === undefined) throw new TypeError("Constructor SharedArrayBuffer requires 'new'")
      if (!active() || options?.maxByteLength !== undefined || typeof length !== 'number') {
        return new Real(length as number, options as never)
      }
      if (!(length >= 0 && length < 2 ** 31)) return new Real(length)
      return memory.allocate(pending.current, Math.trunc(length))
    }
    Object.setPrototypeOf(Pooled, Real)
    Pooled.prototype = Real.prototype
    this.replace(globalThis, 'SharedArrayBuffer', Pooled)
  }

  private guardAtomics(): void {
    for (const name of ATOMICS) {
      const real = (Atomics as unknown as Record<string, (...args: unknown[]) => unknown>)[name]
      if (real === undefined) continue
      this.replace(Atomics, name, (view: unknown, ...args: unknown[]): unknown => {
        if (pending.current >= 0 && isShared(view)) throw uninstrumented(`Atomics.${name}`)
        return real(view, ...args)
      })
    }
  }

  private guardNondeterminism(): void {
    this.refuse(
      Math,
      'random',
      'Math.random()',
      'draw from a fixed list, or try the values in separate checks',
    )
    this.refuse(Date, 'now', 'Date.now()', 'pass the time in, or keep it in a counter')
    this.refuse(performance, 'now', 'performance.now()', 'pass the time in, or keep it in a counter')
    this.refuse(globalThis, 'setTimeout', 'setTimeout()', 'make what it would run a thread of the check')
    this.refuse(globalThis, 'setImmediate', 'setImmediate()', 'make what it would run a thread of the check')
    this.refuse(globalThis, 'setInterval', 'setInterval()', 'make what it would run a thread of the check')
    this.refuse(
      globalThis,
      'queueMicrotask',
      'queueMicrotask()',
      'make what it would run a thread of the check',
    )
    if (typeof crypto === 'object') {
      for (const name of ['getRandomValues', 'randomUUID']) {
        this.refuse(Crypto.prototype, name, `crypto.${name}()`, 'use a fixed value')
      }
    }
    if (typeof process === 'object' && typeof process.hrtime === 'function') {
      this.refuse(process, 'hrtime', 'process.hrtime()', 'pass the time in, or keep it in a counter')
    }
    const active = (): boolean => this.active
    const RealDate = Date
    function CheckedDate(this: unknown, ...args: unknown[]): unknown {
      if (active() && args.length === 0) throw nondeterministic('new Date()', 'pass the time in')
      return new.target === undefined
        ? RealDate()
        : Reflect.construct(RealDate, args, new.target === CheckedDate ? RealDate : new.target)
    }
    Object.setPrototypeOf(CheckedDate, RealDate)
    CheckedDate.prototype = RealDate.prototype
    this.replace(globalThis, 'Date', CheckedDate)
  }

  private refuse(owner: object, name: string, call: string, instead: string): void {
    const real = (owner as Record<string, unknown>)[name] as ((...args: unknown[]) => unknown) | undefined
    if (typeof real !== 'function') return
    const active = (): boolean => this.active
    const refusing = function (this: unknown, ...args: unknown[]): unknown {
      if (active()) throw nondeterministic(call, instead)
      return real.apply(this, args)
    }
    Object.assign(refusing, real)
    this.replace(owner, name, refusing)
  }
}

const ATOMICS: readonly string[] = KIND_NAMES.slice(LOAD, AWAIT)

function where(): string {
  return pending.current < 0
    ? 'the set-up'
    : `thread ${pending.current}, after its step at ${siteName(pending.site[pending.current])}`
}

function nondeterministic(call: string, instead: string): CheckError {
  return new CheckError(
    'ERR_CHECK_NONDETERMINISTIC',
    `${call} was called in ${where()}: a schedule must run the same way every time, or it cannot be explored; ${instead}`,
  )
}

function uninstrumented(call: string): CheckError {
  return new CheckError(
    'ERR_CHECK_UNINSTRUMENTED',
    `${call} touched shared memory in code that is not instrumented, in ${where()}: the checker cannot schedule around it. ` +
      'Name the module in the check: `{ modules: [...] }`, or move the call into the check file; what a getter or setter does must be in a method',
  )
}
