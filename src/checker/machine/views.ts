import { attach } from '../../compiler/runtime.ts'
import { trust } from '../instrument/intrinsics.ts'
import { pending, PLAIN_ADVICE } from './pending.ts'
import { refuse } from '../instrument/refusal.ts'

/**
 * A check gets proxies instead of shared memory: one for each buffer, and one for each view of it. The
 * language reaches memory only through a view, in two ways: by a property, which is a trap of the proxy, or
 * by the internal slots of a typed array, which a proxy does not have. So an access in code that the compiler
 * did not instrument reaches a trap or throws a TypeError. No read or write happens without a step.
 *
 *   in a thread          elements are refused, with the site; methods with steps are modelled (models.ts)
 *   outside the threads  all accesses go to the real object: set-ups and final assertions run without steps
 */
export interface SharedStretch {
  /** A buffer of the maximum length. */
  readonly buffer: SharedArrayBuffer
  readonly growable: boolean
  /** The current length in bytes. */
  length: number
  proxy: SharedArrayBuffer | undefined
}

type Callable = (...args: any[]) => any
type TypedArrayLike = Int32Array & Record<string, unknown>

const { reals } = pending
const key = Symbol.for('heddle.checker.views')
interface ViewTables {
  /** The stretch of each real buffer that the check made. */
  readonly stretches: WeakMap<object, SharedStretch>
  /** Real views that grow with their buffer. */
  readonly tracking: WeakMap<object, SharedStretch>
}
const holder = globalThis as unknown as Record<symbol, ViewTables | undefined>
const { stretches, tracking }: ViewTables = (holder[key] ??= {
  stretches: new WeakMap(),
  tracking: new WeakMap(),
})

const Typed = Object.getPrototypeOf(Int8Array) as { prototype: object }
const getterOf = (owner: object, name: PropertyKey): Callable =>
  Object.getOwnPropertyDescriptor(owner, name)!.get!
const tagOf = getterOf(Typed.prototype, Symbol.toStringTag)
const natives: Record<string, new (...args: any[]) => any> = {}
for (const name of [
  'Int8Array',
  'Uint8Array',
  'Uint8ClampedArray',
  'Int16Array',
  'Uint16Array',
  'Int32Array',
  'Uint32Array',
  'BigInt64Array',
  'BigUint64Array',
  'Float16Array',
  'Float32Array',
  'Float64Array',
]) {
  const made = (globalThis as unknown as Record<string, new (...args: any[]) => any>)[name]
  if (made !== undefined) natives[name] = made
}
const Buffers = SharedArrayBuffer
const Data = DataView
export const typedArrays: Readonly<Record<string, new (...args: any[]) => any>> = natives

/** The name of a typed array's type; undefined for any other value. */
export function kindOf(view: unknown): string | undefined {
  return Reflect.apply(tagOf, view, []) as string | undefined
}

/** The stretch whose length this real view follows, or whose buffer this is and can grow. */
export function growing(real: object): SharedStretch | undefined {
  const found = tracking.get(real)
  if (found !== undefined) return found
  const stretch = stretches.get(real)
  return stretch?.growable === true ? stretch : undefined
}

/** The current number of elements of a real view; for a buffer, of bytes. */
export function currentLength(real: any, property: 'length' | 'byteLength'): number {
  const stretch = growing(real)
  if (stretch === undefined) return real[property]
  if (real instanceof Buffers) return stretch.length
  const bytes = Math.max(0, stretch.length - real.byteOffset)
  if (real instanceof Data) return bytes
  const elements = Math.floor(bytes / real.BYTES_PER_ELEMENT)
  return property === 'length' ? elements : elements * real.BYTES_PER_ELEMENT
}

/** The real object, for plain code. For a view that grows: a view of the current length. */
export function plainOf(x: unknown): any {
  if ((typeof x !== 'object' && typeof x !== 'function') || x === null) return x
  const real = reals.get(x) as TypedArrayLike | undefined
  if (real === undefined) return x
  if (!pending.grows || !tracking.has(real)) return real
  const kind = kindOf(real)
  return kind === undefined
    ? new Data(real.buffer, real.byteOffset, currentLength(real, 'byteLength'))
    : new natives[kind]!(real.buffer, real.byteOffset, currentLength(real, 'length'))
}

export function bufferProxy(stretch: SharedStretch): SharedArrayBuffer {
  if (stretch.proxy !== undefined) return stretch.proxy
  stretches.set(stretch.buffer, stretch)
  const proxy: SharedArrayBuffer = new Proxy(stretch.buffer, bufferTraps)
  stretch.proxy = proxy
  reals.set(proxy, stretch.buffer)
  return proxy
}

/** The stretch of a buffer of the check that was passed to a constructor of views. */
export function stretchBehind(x: unknown): SharedStretch | undefined {
  if (typeof x !== 'object' || x === null) return undefined
  const real = reals.get(x)
  return real === undefined ? undefined : stretches.get(real)
}

/** Whether x is the proxy of a view or a buffer. */
export function isGuarded(x: unknown): x is object {
  return typeof x === 'object' && x !== null && reals.has(x)
}

export function viewProxy<T extends ArrayBufferView>(real: T, grows: boolean): T {
  if (grows) tracking.set(real, stretches.get(real.buffer)!)
  const proxy = new Proxy(real, viewTraps) as T
  reals.set(proxy, real)
  return proxy
}

/** The proxy of a real view or buffer of shared memory; any other value is returned as it is. */
export function proxied(x: any): any {
  if (typeof x !== 'object' || x === null) return x
  const stretch = stretches.get(x)
  if (stretch !== undefined) return bufferProxy(stretch)
  if (!ArrayBuffer.isView(x) || reals.has(x)) return x
  return stretches.has(x.buffer) ? viewProxy(x, false) : x
}

/** Whether a key names an element, existing or not. */
function isElement(name: PropertyKey): boolean {
  if (typeof name !== 'string') return false
  const first = name.charCodeAt(0)
  return (
    ((first >= 48 && first <= 57) || first === 45 || first === 73 || first === 78) &&
    String(Number(name)) === name
  )
}

const ADVICE = `Write it in the check, as an access of its own or a method of the view, or name the module in the check: \`{ modules: [...] }\`. ${PLAIN_ADVICE}`

function refuseElement(view: object, name: PropertyKey, verb: string): never {
  return refuse(
    `code that is not instrumented ${verb} shared memory (element ${String(name)} of ${described(view)})`,
    ADVICE,
  )
}

function described(view: object): string {
  return kindOf(view) === undefined ? 'a DataView' : `an ${kindOf(view)}`
}

/** Accessors of the language that read internal slots. */
const inside: ReadonlySet<PropertyKey> = new Set<PropertyKey>([
  'length',
  'byteLength',
  'byteOffset',
  'buffer',
  'growable',
  'maxByteLength',
  Symbol.toStringTag,
])

const viewTraps: ProxyHandler<any> = {
  get(target, name, receiver) {
    if (isElement(name)) {
      if (pending.current >= 0 && Number(name) < target.length) refuseElement(target, name, 'read')
      return !pending.grows || Number(name) < currentLength(target, 'length') ? target[name] : undefined
    }
    if (inside.has(name)) {
      if (name === 'buffer') return proxied(target.buffer)
      if (pending.grows && (name === 'length' || name === 'byteLength') && growing(target) !== undefined) {
        if (pending.current >= 0)
          refuse(
            `code that is not instrumented read the length of ${described(target)} that can grow`,
            ADVICE,
          )
        return currentLength(target, name)
      }
      return Reflect.get(target, name, target)
    }
    return method(Reflect.get(target, name, receiver))
  },
  set(target, name, value, receiver) {
    if (!isElement(name)) return Reflect.set(target, name, value, receiver)
    if (pending.current >= 0) refuseElement(target, name, 'wrote')
    if (!pending.grows || Number(name) < currentLength(target, 'length')) target[name] = value
    return true
  },
  defineProperty(target, name, descriptor) {
    if (pending.current >= 0 && isElement(name)) refuseElement(target, name, 'wrote')
    return Reflect.defineProperty(target, name, descriptor)
  },
  getOwnPropertyDescriptor(target, name) {
    if (pending.current >= 0 && isElement(name) && Number(name) < target.length)
      refuseElement(target, name, 'read')
    return Reflect.getOwnPropertyDescriptor(target, name)
  },
}

const bufferTraps: ProxyHandler<any> = {
  get(target, name, receiver) {
    if (!inside.has(name)) {
      if (name === Symbol.iterator || name === 'length') {
        refuse(
          'a view of shared memory was made by a constructor that was taken before the check began',
          'Refer to the constructor by its global name, inside the set-up or the threads',
        )
      }
      return method(Reflect.get(target, name, receiver))
    }
    const stretch = stretches.get(target)!
    if (!stretch.growable) return Reflect.get(target, name, target)
    if (name === 'growable') return true
    if (name === 'maxByteLength') return target.byteLength
    if (name !== 'byteLength') return Reflect.get(target, name, target)
    if (pending.current >= 0)
      refuse('code that is not instrumented read the length of a SharedArrayBuffer that can grow', ADVICE)
    return stretch.length
  },
}

/** Methods of the language that access no element. */
const harmless: ReadonlySet<string> = new Set(['subarray'])

const methods = new Map<unknown, Callable>()
/** Marks the methods that replace those of the language. */
export const nativeMark: unique symbol = Symbol.for('heddle.checker.native') as never

/** Whether a method of a view or a buffer is the language's own. */
export function isNativeMethod(fn: unknown): boolean {
  return methods.has(fn)
}

/** The form of a built-in method on a proxy: plain code calls it on the real object. */
function method(value: unknown): unknown {
  return methods.get(value) ?? value
}

/** Gives each method of these prototypes its form for proxies, and for threads a twin by `twinOf`. */
export function guardMethods(
  owner: object,
  prefix: string,
  twinFor: (name: string, native: Callable) => Callable | undefined,
): void {
  for (const name of Reflect.ownKeys(owner)) {
    const native = Object.getOwnPropertyDescriptor(owner, name)?.value as unknown
    if (typeof native !== 'function' || name === 'constructor' || methods.has(native)) continue
    const text = typeof name === 'symbol' ? '[Symbol.iterator]' : name
    const guarded = function (this: unknown, ...args: unknown[]): unknown {
      if (pending.current >= 0 && isGuarded(this) && !harmless.has(text)) {
        refuse(`code that is not instrumented called ${prefix}.${text} on shared memory`, ADVICE)
      }
      if (text === 'grow' && stretchBehind(this) !== undefined)
        return growPlainly(stretchBehind(this)!, args[0])
      return proxied(Reflect.apply(native, plainOf(this), args.map(plainOf)))
    }
    Object.defineProperty(guarded, 'name', { value: native.name })
    Object.defineProperty(guarded, nativeMark, { value: true })
    const twin = twinFor(text, native as Callable)
    if (twin !== undefined) attach(guarded, twin as never)
    trust(guarded)
    methods.set(native, guarded)
    methods.set(guarded, guarded)
  }
}

/** `grow` outside the threads. */
function growPlainly(stretch: SharedStretch, length: unknown): void {
  checkGrowth(stretch, length)
  stretch.length = Math.trunc(Number(length)) || 0
}

/** Throws what `SharedArrayBuffer.prototype.grow` throws. */
export function checkGrowth(stretch: SharedStretch, length: unknown): void {
  if (!stretch.growable)
    throw new TypeError(
      'Method SharedArrayBuffer.prototype.grow called on incompatible receiver #<SharedArrayBuffer>',
    )
  const bytes = Math.trunc(Number(length)) || 0
  if (bytes < stretch.length || bytes > stretch.buffer.byteLength) {
    throw new RangeError('SharedArrayBuffer.prototype.grow: Invalid length parameter')
  }
}
