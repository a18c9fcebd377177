/**
 * Classes whose objects travel by reference: what crosses is a plain value that stands for the object (the
 * pointer of a mutex in the arena), and the receiver makes of it an object that means the same.
 */
export interface Travelling {
  readonly name: string
  readonly prototype: object
  readonly toPlain: (value: object) => unknown
  readonly fromPlain: (plain: unknown) => object
}

/**
 * On the prototype of each class that travels: another copy of heddle in this program knows by it that the
 * object is not of its own classes.
 */
const travelsSymbol: symbol = Symbol.for('heddle.travels')

/** The name of the class, where the object is one of another copy of heddle; else undefined. */
export function ofAnotherCopy(object: object): string | undefined {
  const name = (object as { [key: symbol]: unknown })[travelsSymbol]
  return typeof name === 'string' && travellingOf(object) === undefined ? name : undefined
}

const byName = new Map<string, Travelling>()
const byPrototype = new Map<object, Travelling>()

/**
 * From here on, objects of `Class` and of its subclasses travel. Every thread that sends or receives one has
 * to have made this call, which it has if it imported the module of the class. `name` is what both sides know
 * it by.
 */
export function registerTravelling<T extends object, Plain>(
  name: string,
  Class: abstract new (...args: never[]) => T,
  toPlain: (value: T) => Plain,
  fromPlain: (plain: Plain) => T,
): void {
  const known = byName.get(name)
  if (known !== undefined && known.prototype !== Class.prototype) {
    throw new TypeError(`registerTravelling('${name}'): another class travels under this name already`)
  }
  const travelling = {
    name,
    prototype: Class.prototype as object,
    toPlain: toPlain as Travelling['toPlain'],
    fromPlain: fromPlain as Travelling['fromPlain'],
  }
  byName.set(name, travelling)
  Object.defineProperty(Class.prototype, travelsSymbol, { value: name, configurable: true })
  byPrototype.set(Class.prototype as object, travelling)
  for (const listener of listeners) listener()
}

const companions = new Set<string>()

/**
 * The module at this address registers classes that travel: kernels that are booted from here on load it on
 * every CPU.
 */
export function onEveryCpu(url: string): void {
  companions.add(url)
}

export function companionModules(): readonly string[] {
  return [...companions]
}

const listeners: (() => void)[] = []

/** Who remembers what a prototype means forgets it when a class is registered. */
export function onRegister(listener: () => void): void {
  listeners.push(listener)
}

export function travellingByName(name: string): Travelling | undefined {
  return byName.get(name)
}

/** The registration that covers objects with this prototype: its own, or the nearest above it. */
export function travellingOf(prototype: object | null): Travelling | undefined {
  if (byPrototype.size === 0) return undefined
  for (let at = prototype; at !== null; at = Object.getPrototypeOf(at) as object | null) {
    const found = byPrototype.get(at)
    if (found !== undefined) return found
  }
  return undefined
}
