import { CheckError } from '../errors.ts'
import type { Memory } from './memory.ts'
import { holdsMemory, isThenable, noteHidden } from '../instrument/foreign.ts'
import { trust } from '../instrument/intrinsics.ts'
import { AWAIT, KIND_NAMES, LOAD } from './operations.ts'
import { isShared, pending, PLAIN_ADVICE, type Refused } from './pending.ts'
import { refuse, where } from '../instrument/refusal.ts'
import { attachAtomic } from '../instrument/twins.ts'
import { isGuarded, plainOf, proxied, stretchBehind, typedArrays, viewProxy } from './views.ts'

/**
 * While a check runs, some globals are replaced:
 *   - `SharedArrayBuffer` returns the same buffers, zeroed, in every execution, so that locations keep
 *     their names. The buffers and their views are behind proxies, so that each access is seen (views.ts);
 *   - functions that would treat a proxy as another kind of object get the real object, or refuse inside a
 *     thread;
 *   - clocks, randomness and timers refuse: the same schedule must always run the same way.
 * A check runs synchronously, so no other code meets the replacements.
 */
export class Guards {
  private readonly memory: Memory
  private readonly restore: (() => void)[] = []
  /** Whether the set-up runs: it may use Atomics on the memory that it made, but no clock. */
  inSetup = false

  constructor(memory: Memory) {
    this.memory = memory
  }

  install(): void {
    this.guardSharedArrayBuffer()
    this.guardViews()
    this.guardAtomics()
    this.guardCalls()
    this.guardProxies()
    this.guardPromises()
    this.guardNondeterminism()
  }

  remove(): void {
    while (this.restore.length > 0) this.restore.pop()?.()
  }

  /** Replaces a property, where it is: some are those of a prototype. */
  private replace(owner: object, name: string, value: unknown): void {
    let holder: object | null = owner
    while (holder !== null && !Object.hasOwn(holder, name)) holder = Object.getPrototypeOf(holder) as object
    if (holder === null) return
    const at = holder
    const descriptor = Object.getOwnPropertyDescriptor(at, name)!
    if (!descriptor.configurable) return
    trust(value)
    Object.defineProperty(at, name, {
      value,
      writable: true,
      configurable: true,
      enumerable: descriptor.enumerable,
    })
    this.restore.push(() => Object.defineProperty(at, name, descriptor))
  }

  /** Refuses calls of a function inside threads, by whatever name the program has kept it. */
  private refuseAll(fn: unknown, refused: Refused): void {
    if (typeof fn !== 'function') return
    pending.refused.set(fn, refused)
    this.restore.push(() => pending.refused.delete(fn))
  }

  private get active(): boolean {
    return this.inSetup || pending.current >= 0
  }

  private guardSharedArrayBuffer(): void {
    const active = (): boolean => this.active
    const { memory } = this
    const Real = SharedArrayBuffer
    const Guarded = new Proxy(Real, {
      construct(target, args: unknown[], newTarget) {
        if (!active() || newTarget !== Guarded) return Reflect.construct(target, args, newTarget) as object
        const options = args[1] as { maxByteLength?: unknown } | undefined
        const max = options === undefined || options === null ? undefined : options.maxByteLength
        const length = index(args[0])
        const most = max === undefined ? undefined : index(max)
        // For an invalid call the original throws the best error.
        if (length < 0 || (most !== undefined && most < length))
          return Reflect.construct(target, args) as object
        return memory.allocate(pending.current, length, most)
      },
    })
    this.replace(globalThis, 'SharedArrayBuffer', Guarded)
  }

  /** Makes the constructors of views return proxies for the buffers of the check. */
  private guardViews(): void {
    for (const [name, Real] of [...Object.entries(typedArrays), ['DataView', DataView] as const]) {
      const Guarded: typeof Real = new Proxy(Real, {
        construct(target, args: unknown[], newTarget) {
          const maker = newTarget === Guarded ? target : newTarget
          const stretch = stretchBehind(args[0])
          if (stretch !== undefined) return makeView(target, stretch, args, maker)
          if (!isGuarded(args[0])) return Reflect.construct(target, args, maker) as object
          if (pending.current >= 0)
            refuse(`new ${name}() copied shared memory`, 'Read the elements in the check itself')
          return Reflect.construct(target, [plainOf(args[0]), ...args.slice(1)], maker) as object
        },
      })
      pending.reals.set(Guarded, Real)
      this.replace(globalThis, name, Guarded)
    }
  }

  private guardAtomics(): void {
    for (const name of ATOMICS) {
      const real = (Atomics as unknown as Record<string, (...args: unknown[]) => unknown>)[name]
      if (real === undefined) continue
      const guarded = (view: unknown, ...args: unknown[]): unknown => {
        if (pending.current >= 0 && isShared(view)) {
          refuse(`Atomics.${name} touched shared memory in code that is not instrumented`, ADVICE)
        }
        return real(plainOf(view), ...args)
      }
      attachAtomic(guarded, name)
      this.replace(Atomics, name, guarded)
    }
  }

  /** Guards functions that read the internal slots of their argument, which a proxy does not have. */
  private guardCalls(): void {
    const isView = ArrayBuffer.isView
    this.replace(ArrayBuffer, 'isView', (x: unknown) => isView(plainOf(x)))
    const held = globalThis as unknown as Record<string, any>
    this.unwrap(held, 'structuredClone', 'structuredClone()')
    this.unwrap(held['TextDecoder']?.prototype, 'decode', 'TextDecoder.decode()')
    this.unwrap(held['TextEncoder']?.prototype, 'encodeInto', 'TextEncoder.encodeInto()')
    this.unwrap(held['MessagePort']?.prototype, 'postMessage', 'MessagePort.postMessage()')
    this.unwrap(held['Crypto']?.prototype, 'getRandomValues', 'crypto.getRandomValues()')
    for (const name of ['from', 'concat', 'compare', 'copyBytesFrom', 'byteLength', 'isBuffer']) {
      this.unwrap(held['Buffer'], name, `Buffer.${name}()`)
    }
  }

  /** Records target and handler of each proxy, to know the code that its traps run: see unseen.ts. */
  private guardProxies(): void {
    const Guarded = new Proxy(Proxy, {
      construct(target, args: [object, object]) {
        const made = Reflect.construct(target, args) as object
        pending.proxies.set(made, { target: args[0], handler: args[1] })
        return made
      },
    })
    this.replace(globalThis, 'Proxy', Guarded)
  }

  /** Nothing awaits a promise that a thread makes: its rejection has been reported already. */
  private guardPromises(): void {
    const { then } = Promise.prototype
    const Guarded: PromiseConstructor = new Proxy(Promise, {
      construct(target, args: unknown[], newTarget) {
        const made = Reflect.construct(target, args, newTarget === Guarded ? target : newTarget) as object
        if (pending.current >= 0) Reflect.apply(then, made, [undefined, () => undefined])
        return made
      },
    })
    this.replace(globalThis, 'Promise', Guarded)
    const refuseThen = (args: readonly unknown[] = []): void => {
      if (pending.current >= 0 && args.some(fn => typeof fn === 'function'))
        refuse(
          'a promise was given a function to call later',
          'Await the promise in the thread, or make the function a thread of the check',
        )
    }
    this.replace(Promise.prototype, 'then', function (this: unknown, ...args: unknown[]): unknown {
      refuseThen(args)
      return Reflect.apply(then, this, args)
    })
    this.refuseAll(then, refuseThen)
    const later = (call: string): Refused => {
      return () => refuse(`${call} was called, which calls functions later`, 'Call them in the thread itself')
    }
    const makers = Promise as unknown as Record<string, unknown>
    this.refuseAll(makers['try'], later('Promise.try()'))
    this.refuseAll((Array as unknown as Record<string, unknown>)['fromAsync'], later('Array.fromAsync()'))
    this.refuseAll(FinalizationRegistry.prototype.register, later('FinalizationRegistry.register()'))
    for (const name of ['resolve', 'all', 'allSettled', 'any', 'race']) {
      this.refuseAll(makers[name], ([first] = []) => {
        if ((Array.isArray(first) ? (first as unknown[]) : [first]).some(isThenable))
          refuse(
            `Promise.${name}() got an object with a method \`then\`, which it calls later`,
            'Call the method in the thread itself',
          )
      })
    }
  }

  /** Makes the function get the real object behind a proxy; inside a thread it refuses. */
  private unwrap(owner: object | undefined, name: string, call: string): void {
    const real = (owner as Record<string, unknown> | undefined)?.[name] as
      | ((...args: unknown[]) => unknown)
      | undefined
    if (owner === undefined || typeof real !== 'function') return
    const guarded = function (this: unknown, ...args: unknown[]): unknown {
      if (!holdsMemory(args)) {
        noteHidden(call)
        return Reflect.apply(real, this, args)
      }
      if (pending.current >= 0)
        refuse(
          `${call} was given shared memory`,
          'Read it in the check itself, element by element, and give the copy',
        )
      const plain = args.map(x => (Array.isArray(x) ? x.map(plainOf) : plainOf(x)) as unknown)
      return proxied(Reflect.apply(real, this, plain))
    }
    Object.assign(guarded, real)
    this.replace(owner, name, guarded)
  }

  private guardNondeterminism(): void {
    this.refuse(
      Math,
      'random',
      'Math.random()',
      'draw from a fixed list, or try the values in separate checks',
    )
    this.refuse(Date, 'now', 'Date.now()', TIME)
    for (const name of ['now', 'mark', 'measure', 'toJSON'])
      this.refuse(performance, name, `performance.${name}()`, TIME)
    this.refuse(
      Intl.DateTimeFormat.prototype,
      'formatToParts',
      'DateTimeFormat.formatToParts()',
      TIME,
      args => args?.[0] !== undefined,
    )
    const { Temporal } = globalThis as { Temporal?: { Now: object } }
    for (const name of Object.getOwnPropertyNames(Temporal?.Now ?? {}))
      this.refuse(Temporal!.Now, name, `Temporal.Now.${name}()`, TIME)
    this.refuseAll(WeakRef.prototype.deref, () => {
      pending.unseen ??= `a WeakRef was read, ${where()}: only that what it refers to is still there was tried`
    })
    for (const name of ['setTimeout', 'setImmediate', 'setInterval']) {
      this.refuse(globalThis, name, `${name}()`, 'make the callback a thread of the check')
      this.refuseInAssertions(name)
    }
    this.refuse(globalThis, 'queueMicrotask', 'queueMicrotask()', 'make the callback a thread of the check')
    if (typeof process === 'object')
      this.refuse(process, 'nextTick', 'process.nextTick()', 'make the callback a thread of the check')
    if (typeof crypto === 'object') {
      for (const name of ['getRandomValues', 'randomUUID']) {
        this.refuse(Crypto.prototype, name, `crypto.${name}()`, 'use a fixed value')
      }
    }
    if (typeof process === 'object' && typeof process.hrtime === 'function') {
      this.refuse(process.hrtime, 'bigint', 'process.hrtime.bigint()', TIME)
      this.refuse(process, 'hrtime', 'process.hrtime()', TIME)
      const random = process.getBuiltinModule?.('node:crypto')
      for (const name of random === undefined ? [] : RANDOM)
        this.refuse(random!, name, `crypto.${name}()`, 'use a fixed value')
    }
    const active = (): boolean => this.active
    const RealDate = Date
    const refuseDate: Refused = (args, isNew) => {
      if (active() && (!isNew || args?.length === 0))
        throw nondeterministic(isNew ? 'new Date()' : 'Date()', 'pass the time in')
    }
    this.refuseAll(RealDate, refuseDate)
    function CheckedDate(this: unknown, ...args: unknown[]): unknown {
      if (new.target === undefined) refuseDate(args, false)
      else refuseDate(args, true)
      return new.target === undefined
        ? RealDate()
        : Reflect.construct(RealDate, args, new.target === CheckedDate ? RealDate : new.target)
    }
    Object.setPrototypeOf(CheckedDate, RealDate)
    CheckedDate.prototype = RealDate.prototype
    this.replace(globalThis, 'Date', CheckedDate)
  }

  /** Refuses a timer in an assertion, also for code that catches the error: the check would pass before. */
  private refuseInAssertions(name: string): void {
    const real = (globalThis as unknown as Record<string, (...args: unknown[]) => unknown>)[name]
    const refusing = (...args: unknown[]): unknown => {
      if (pending.judging && pending.current < 0) {
        const error = new CheckError(
          'ERR_CHECK_SETUP',
          `an assertion called ${name}(), whose callback judges nothing: the check is judged before it runs; call its code in the assertion itself`,
        )
        pending.refusal ??= error
        throw error
      }
      return real(...args)
    }
    this.replace(globalThis, name, Object.assign(refusing, real))
  }

  /** `allowed`: whether a call with these arguments is fixed. */
  private refuse(
    owner: object,
    name: string,
    call: string,
    instead: string,
    allowed: (args: readonly unknown[] | undefined) => boolean = () => false,
  ): void {
    const real = (owner as Record<string, unknown>)[name] as ((...args: unknown[]) => unknown) | undefined
    if (typeof real !== 'function') return
    const refused: Refused = args => {
      if (this.active && !allowed(args)) throw nondeterministic(call, instead)
    }
    this.refuseAll(real, refused)
    const refusing = function (this: unknown, ...args: unknown[]): unknown {
      refused(args, false)
      return real.apply(this, args)
    }
    Object.assign(refusing, real)
    this.replace(owner, name, refusing)
  }
}

/** `ToIndex`, or -1 for a value that `ToIndex` refuses. */
function index(value: unknown): number {
  const number = Math.trunc(Number(value)) || 0
  return number < 0 || number >= 2 ** 31 ? -1 : number
}

type Maker = new (...args: any[]) => ArrayBufferView

/** A view of a buffer of the check. Without an explicit length it grows with a buffer that can grow. */
function makeView(
  target: Maker,
  stretch: NonNullable<ReturnType<typeof stretchBehind>>,
  args: unknown[],
  maker: unknown,
): object {
  const [, offset, length] = args
  const tracks = stretch.growable && length === undefined
  if (stretch.growable) {
    const size = (target as unknown as { BYTES_PER_ELEMENT?: number }).BYTES_PER_ELEMENT ?? 1
    const end = index(offset) + (tracks ? 0 : index(length) * size)
    if (pending.current >= 0 && end > 0)
      refuse(
        'a view of a part of a buffer that can grow was made in a thread',
        'Make it in the set-up, or without an offset and a length',
      )
    if (end > stretch.length)
      throw new RangeError(`Invalid view of ${end} bytes on a buffer of ${stretch.length}`)
  }
  const size = (target as unknown as { BYTES_PER_ELEMENT?: number }).BYTES_PER_ELEMENT ?? 1
  const most = tracks ? Math.floor((stretch.buffer.byteLength - index(offset)) / size) : length
  const made = Reflect.construct(target, [stretch.buffer, offset, most], maker as Maker) as ArrayBufferView
  return viewProxy(made, tracks)
}

// Node's `inspect` reads through a proxy. The function that `inspect` calls first is installed here once,
// because changing a prototype again and again is slow.
const custom = Symbol.for('nodejs.util.inspect.custom')
for (const prototype of [
  Object.getPrototypeOf(Int8Array.prototype),
  DataView.prototype,
  SharedArrayBuffer.prototype,
]) {
  const value = function (this: unknown): unknown {
    if (pending.current >= 0 && (isShared(this) || isGuarded(this))) {
      refuse(
        'util.inspect() or console.log() read shared memory',
        'Print values that the check itself has read',
      )
    }
    return this
  }
  Object.defineProperty(prototype, custom, { value, configurable: true, writable: true, enumerable: false })
}

const ADVICE = `Name the module in the check: \`{ modules: [...] }\`, or move the call into the check file. ${PLAIN_ADVICE}`

const TIME = 'pass the time in, or keep it in a counter'

/** Functions of `node:crypto` whose results are random. */
const RANDOM: readonly string[] =
  'randomBytes randomFill randomFillSync randomInt randomUUID getRandomValues generateKey generateKeySync generateKeyPair generateKeyPairSync generatePrime generatePrimeSync'.split(
    ' ',
  )

const ATOMICS: readonly string[] = KIND_NAMES.slice(LOAD, AWAIT)

function nondeterministic(call: string, instead: string): CheckError {
  const error = new CheckError(
    'ERR_CHECK_NONDETERMINISTIC',
    `${call} was called ${where()}: a schedule must run the same way every time, or it cannot be explored; ${instead}`,
  )
  // A set-up that catches the error is refused too.
  pending.refusal ??= error
  return error
}
