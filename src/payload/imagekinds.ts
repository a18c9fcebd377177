/**
 * What only an image may contain, the state of a task: code by name, and objects whose classes upper layers
 * register. An ordinary payload refuses them or copies them as plain objects.
 *
 * No part of an image is code. The receiver finds each function by its name among those that its own modules
 * have registered.
 */

import type { HeldWeakly } from './weakentries.ts'

/** The name by which another thread, or another process with the same code, finds what a module holds. */
export interface CodeName {
  /** The key of the module: the same on every machine. */
  readonly module: string
  /** Where the sender's copy of the module was loaded from: the same process can import it from there. */
  readonly url: string
  /** The path of names inside the module: `Parser.prototype.next`. */
  readonly key: string
  /** The hash of the compiled body, or what else must be the same there; '' where the path is enough. */
  readonly hash: string
}

/** An image that cannot be read: it was cut off, changed, or written by another version. */
export class ImageError extends Error {
  override readonly name = 'ImageError'
  readonly code = 'ERR_HEDDLE_IMAGE'
}

/** An upper layer, which knows the code of this thread. */
export interface ImageCode {
  /** An image begins. */
  begin(): void
  /** The name of a function, object or symbol that a module made when it was loaded; or undefined. */
  nameOf(value: object | symbol): CodeName | undefined
  /** If a module holds the object, and it has no name: what holds it, and the advice. Else undefined. */
  heldBy(value: object | symbol): { readonly holder: string; readonly advice: string } | undefined
  /** The WeakMaps and WeakSets of the modules around the frames. */
  weaks(): readonly HeldWeakly[]
  /** The name of the class that has this prototype; a text, if its objects cannot be copied; or undefined. */
  classOf(prototype: object): CodeName | string | undefined
  /** The private fields of an instance, by the class that declares them, the base class first. */
  privatesOf(value: object): readonly PrivateValues[]
  /** A new object with this prototype and the private fields of the classes. Throws as `find`. */
  install(carriers: readonly CodeName[], prototype: object): object
  writePrivates(name: CodeName, object: object, names: readonly string[], values: readonly unknown[]): void
  /** How a closure was made, or undefined. */
  closureOf(fn: object): ClosureName | undefined
  /** Finds what `nameOf` named. Throws if it is missing or has changed. */
  find(name: CodeName): object | symbol
  /** The prototype of the class that `classOf` named. Throws likewise. */
  prototypeOf(name: CodeName): object
  /** Makes the closure again. Throws likewise. */
  make(name: CodeName, captured: readonly unknown[], isMarked: boolean): object
}

export interface PrivateValues {
  readonly code: CodeName
  readonly names: readonly string[]
  readonly values: readonly unknown[]
}

export interface ClosureName {
  readonly code: CodeName
  /** The values that it captures. */
  readonly captured: readonly unknown[]
  /** It has the mark of functions that unwind: some get it only when they are passed on. */
  readonly isMarked: boolean
  /** The name and the length that a closure of this maker has. */
  readonly name: string
  readonly length: number
}

let code: ImageCode | null = null

export function setImageCode(next: ImageCode): void {
  code = next
}

export function imageCode(): ImageCode | null {
  return code
}

/** A class of objects that travel only in images: part by part. */
export interface ImageKind<T extends object = object> {
  readonly name: string
  /** It is a variable that functions share: one of a module's functions belongs to the module. */
  readonly isVariable?: boolean
  /** The parts of the object. It must not change the object. */
  parts(object: T): readonly unknown[]
  /** Makes the object before its parts are known: it may contain itself. */
  create(): T
  fill(object: T, parts: readonly unknown[]): void
  /** Called when the whole image has been read: only now are the objects among the parts complete. */
  settle?(object: T): void
  /** The steps to a part, in the path of an error. Default: its index. */
  steps?(object: T, part: number): readonly (string | number)[]
}

const byPrototype = new Map<object, ImageKind>()
const byName = new Map<string, ImageKind>()

/** From now on objects with exactly this prototype travel in images. */
export function registerImageKind<T extends object>(prototype: object, kind: ImageKind<T>): void {
  byPrototype.set(prototype, kind as unknown as ImageKind)
  byName.set(kind.name, kind as unknown as ImageKind)
}

export function imageKindOf(prototype: object | null): ImageKind | undefined {
  return prototype === null ? undefined : byPrototype.get(prototype)
}

export function imageKindByName(name: string): ImageKind | undefined {
  return byName.get(name)
}
