/**
 * The functions and classes that the variables of a module hold, by their path: `total`, `Parser.parse`,
 * `Parser.prototype.next`, `rules.0.test`. Reads run no getter of the program.
 */
import type { CodeName } from '../../payload/imagekinds.ts'

interface ModuleVariables {
  readonly key: string
  readonly url: string
  readonly variables: ReadonlyMap<string, () => unknown>
}

/** Further in, objects are data. */
const LEVELS = 8
/** The most objects of one module that are searched. */
const OBJECTS_MAX = 20_000
/** Of an object with more properties than this, the rest is data. */
const PROPERTIES_MAX = 1000

/** Undefined while a constant is not set. */
export function readOf(read: () => unknown): unknown {
  try {
    return read()
  } catch {
    return undefined
  }
}

/** Adds the names of a module's values. True: all its variables are set. */
export function nameValues(
  { key, url, variables }: ModuleVariables,
  names: WeakMap<object, CodeName>,
): boolean {
  let isWhole = true
  const seen = new Set<object>()
  for (const [name, read] of variables) {
    const value = readOf(read)
    if (value === undefined) isWhole = false
    else add(value, name, 0)
  }
  return isWhole

  function add(value: unknown, path: string, level: number): void {
    const isFunction = typeof value === 'function'
    if (!isFunction && (typeof value !== 'object' || value === null)) return
    if (seen.has(value) || seen.size > OBJECTS_MAX) return
    seen.add(value)
    if (isFunction && !names.has(value)) {
      names.set(value, { module: key, url, key: path, hash: level > 1 ? functionHash(value) : '' })
    }
    if (level === LEVELS) return
    if (Array.isArray(value) && value.length > PROPERTIES_MAX) return
    if (!isFunction && isData(value)) return
    let count = 0
    for (const own of Reflect.ownKeys(value)) {
      if (typeof own !== 'string' || own === 'caller' || own === 'arguments') continue
      if (++count > PROPERTIES_MAX) return
      const property = descriptorOf(value, own)
      if (property === undefined) continue
      if ('value' in property) add(property.value, `${path}.${own}`, level + 1)
      if (property.get !== undefined) add(property.get, `${path}.${own}:get`, LEVELS)
      if (property.set !== undefined) add(property.set, `${path}.${own}:set`, LEVELS)
    }
  }
}

/** A function may contain a dot in a name: steps are matched against the keys, the longest first. */
export function findNamed(
  variables: ReadonlyMap<string, () => unknown>,
  path: string,
): ((...args: any[]) => unknown) | undefined {
  const steps = path.split('.')
  const read = variables.get(steps[0])
  let value: unknown = read === undefined ? undefined : readOf(read)
  for (let at = 1; at < steps.length; at++) {
    if ((typeof value !== 'object' || value === null) && typeof value !== 'function') return undefined
    const [, step, accessor] = /^(.*?)(?::(get|set))?$/s.exec(steps[at]) as unknown as [
      string,
      string,
      string?,
    ]
    const property = descriptorOf(value, step)
    if (accessor === 'get') value = property?.get
    else if (accessor === 'set') value = property?.set
    else value = property?.value as unknown
  }
  return typeof value === 'function' ? (value as (...args: any[]) => unknown) : undefined
}

/** A proxy may throw. */
function descriptorOf(value: object, key: string): PropertyDescriptor | undefined {
  try {
    return Object.getOwnPropertyDescriptor(value, key)
  } catch {
    return undefined
  }
}

/** Objects without functions under string keys. */
function isData(value: object): boolean {
  return ArrayBuffer.isView(value) || value instanceof ArrayBuffer || value instanceof Date
}

/**
 * The hash of a function's text. A function that is found deep inside objects, which a program may change,
 * must be the same one there.
 */
export function functionHash(fn: object): string {
  const text = Function.prototype.toString.call(fn)
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return `text ${(hash >>> 0).toString(16)}`
}
