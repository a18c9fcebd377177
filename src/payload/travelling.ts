/**
 * Classes whose objects travel as a plain value (the pointer of a mutex in the arena). The receiver creates
 * an object with the same meaning from that value.
 */
export interface Travelling {
  readonly name: string
  readonly prototype: object
  readonly toPlain: (value: object) => unknown
  readonly fromPlain: (plain: unknown) => object
}

/**
 * Set on the prototype of each registered class. Another copy of heddle in this program recognizes by it that
 * the object is not of its own classes.
 */
const travelsSymbol: symbol = Symbol.for('heddle.travels')

/** The name of the class if the object belongs to another copy of heddle; else undefined. */
export function ofAnotherCopy(object: object): string | undefined {
  const name = (object as { [key: symbol]: unknown })[travelsSymbol]
  return typeof name === 'string' && travellingOf(object) === undefined ? name : undefined
}

const byName = new Map<string, Travelling>()
const byPrototype = new Map<object, Travelling>()

/**
 * From now on objects of `Class` and of its subclasses travel. Every thread that sends or receives one must
 * have made this call; importing the module of the class does. `name` identifies the class on both sides.
 */
export function registerTravelling<T extends object, Plain>(
  name: string,
  Class: abstract new (...args: never[]) => T,
  toPlain: (value: T) => Plain,
  fromPlain: (plain: Plain) => T,
): void {
  const known = byName.get(name)
  if (known !== undefined && known.prototype !== Class.prototype) {
    throw new TypeError(
      `registerTravelling('${name}'): another class has this name already; choose another name`,
    )
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

/** The module at this address registers classes: kernels that are booted from now on load it on every CPU. */
export function onEveryCpu(url: string): void {
  companions.add(url)
}

export function companionModules(): readonly string[] {
  return [...companions]
}

const listeners: (() => void)[] = []

/** Calls `listener` after each registration, so that caches by prototype can be cleared. */
export function onRegister(listener: () => void): void {
  listeners.push(listener)
}

export function travellingByName(name: string): Travelling | undefined {
  return byName.get(name)
}

/** The registration for objects with this prototype: its own, or that of its nearest base class. */
export function travellingOf(prototype: object | null): Travelling | undefined {
  if (byPrototype.size === 0) return undefined
  for (let at = prototype; at !== null; at = Object.getPrototypeOf(at) as object | null) {
    const found = byPrototype.get(at)
    if (found !== undefined) return found
  }
  return undefined
}
