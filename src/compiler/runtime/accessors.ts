/** Reads and assignments that may call an accessor which unwinds. */
import { itself } from '../../coroutine/core/coroutine.ts'
import { frames } from '../../coroutine/core/frames.ts'
import { inspectors } from './builtins/inspectors.ts'

type Accessor = ((...args: any[]) => unknown) & { [itself]?: unknown }

/** The accessor of that name that unwinds, if it can be found without running code. */
function accessorOf(object: any, name: PropertyKey, kind: 'get' | 'set'): Accessor | undefined {
  // A key that must be converted first is left to the access itself.
  if (inspectors === null || isObject(name)) return undefined
  for (let holder = object; holder !== null; holder = Object.getPrototypeOf(holder)) {
    if (inspectors.isProxy(holder)) return undefined
    const found = Object.getOwnPropertyDescriptor(holder, name)
    if (found === undefined) continue
    const accessor: Accessor | undefined = found[kind]
    return accessor !== undefined && accessor[itself] === accessor ? accessor : undefined
  }
  return undefined
}

/** True for values that can have private names. */
export function isObject(value: unknown): boolean {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}

/** `object[name]`, which may unwind if `ok` permits it. */
export function get(ok: unknown, object: any, name: PropertyKey): unknown {
  const getter = ok && isObject(object) ? accessorOf(object, name, 'get') : undefined
  if (getter === undefined) return object[name]
  frames.ok = 1
  return Reflect.apply(getter, object, [])
}

/** `object[name] = value` by a setter that unwinds. Returns false, and does nothing, if there is none. */
export function set(ok: unknown, object: any, name: PropertyKey, value: unknown): boolean {
  const setter = ok && isObject(object) ? accessorOf(object, name, 'set') : undefined
  if (setter === undefined) return false
  frames.ok = 1
  Reflect.apply(setter, object, [value])
  return true
}
