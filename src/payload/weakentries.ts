/**
 * What a module's WeakMaps and WeakSets say about the objects of a task: private fields in an older style,
 * metadata, memory of results. Such an entry travels with its object. The receiver adds it to the same
 * collection, which it finds by name.
 */
import { ImageError, registerImageKind } from './imagekinds.ts'

export type WeakCollection = WeakMap<object, unknown> | WeakSet<object>

/** A weak collection that a module holds. */
export interface HeldWeakly {
  readonly collection: WeakCollection
  /** The path of the collection, and its module. */
  readonly holder: string
}

export class WeakEntry {
  collection: unknown
  holder: string
  key: unknown
  value: unknown

  constructor(collection: unknown, holder: string, key: unknown, value: unknown) {
    this.collection = collection
    this.holder = holder
    this.key = key
    this.value = value
  }
}

const probe = {}

/** True for a collection itself, not for the prototype of a class that extends one. */
export function isWeak(value: object): value is WeakCollection {
  if (!(value instanceof WeakMap || value instanceof WeakSet)) return false
  try {
    hasIn(value as WeakCollection, probe)
    return true
  } catch {
    return false
  }
}

/** By the platform's method: that of a derived class is code of the program. */
function hasIn(collection: WeakCollection, key: object): boolean {
  return collection instanceof WeakMap
    ? WeakMap.prototype.has.call(collection, key)
    : WeakSet.prototype.has.call(collection, key)
}

/** The entry of an object in a collection, or undefined. */
export function weakEntryOf({ collection, holder }: HeldWeakly, key: object): WeakEntry | undefined {
  if (!hasIn(collection, key)) return undefined
  const value = collection instanceof WeakMap ? WeakMap.prototype.get.call(collection, key) : undefined
  return new WeakEntry(collection, holder, key, value)
}

registerImageKind<WeakEntry>(WeakEntry.prototype, {
  name: 'weak entry',
  parts: ({ collection, key, value }) => [collection, key, value],
  create: () => new WeakEntry(undefined, '', undefined, undefined),
  fill(entry, [collection, key, value]) {
    const isOne = (typeof key === 'object' && key !== null) || typeof key === 'function'
    if (!isOne || typeof collection !== 'object' || collection === null || !isWeak(collection))
      throw new ImageError(
        'the image is damaged: a weak entry without its collection; use another copy of it',
      )
    Object.assign(entry, { collection, key, value })
  },
  settle({ collection, key, value }) {
    if (collection instanceof WeakMap) WeakMap.prototype.set.call(collection, key as object, value)
    else WeakSet.prototype.add.call(collection as WeakSet<object>, key as object)
  },
  steps: ({ holder }) => [`the entry in ${holder}`],
})
