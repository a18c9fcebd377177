/** The search of TimSort: from a hint in steps that double, then by halves. */
import { number, type Order, type Stops } from './comparator.ts'

/** Where `key` belongs, before any equal to it. */
export function* gallopLeft(
  { plain, resumable }: Order,
  array: any[],
  key: unknown,
  base: number,
  length: number,
  hint: number,
): Stops<number> {
  let last = 0
  let offset = 1
  let element = array[base + hint]
  let order = resumable === undefined ? number(plain(element, key)) : number(yield* resumable(element, key))
  if (order < 0) {
    const most = length - hint
    while (offset < most) {
      element = array[base + hint + offset]
      order = resumable === undefined ? number(plain(element, key)) : number(yield* resumable(element, key))
      if (order >= 0) break
      last = offset
      offset = offset * 2 + 1
    }
    if (offset > most) offset = most
    last += hint
    offset += hint
  } else {
    const most = hint + 1
    while (offset < most) {
      element = array[base + hint - offset]
      order = resumable === undefined ? number(plain(element, key)) : number(yield* resumable(element, key))
      if (order < 0) break
      last = offset
      offset = offset * 2 + 1
    }
    if (offset > most) offset = most
    const before = last
    last = hint - offset
    offset = hint - before
  }
  last++
  while (last < offset) {
    const middle = last + ((offset - last) >> 1)
    element = array[base + middle]
    order = resumable === undefined ? number(plain(element, key)) : number(yield* resumable(element, key))
    if (order < 0) last = middle + 1
    else offset = middle
  }
  return offset
}

/** Where `key` belongs, after any equal to it. */
export function* gallopRight(
  { plain, resumable }: Order,
  array: any[],
  key: unknown,
  base: number,
  length: number,
  hint: number,
): Stops<number> {
  let last = 0
  let offset = 1
  let element = array[base + hint]
  let order = resumable === undefined ? number(plain(key, element)) : number(yield* resumable(key, element))
  if (order < 0) {
    const most = hint + 1
    while (offset < most) {
      element = array[base + hint - offset]
      order = resumable === undefined ? number(plain(key, element)) : number(yield* resumable(key, element))
      if (order >= 0) break
      last = offset
      offset = offset * 2 + 1
    }
    if (offset > most) offset = most
    const before = last
    last = hint - offset
    offset = hint - before
  } else {
    const most = length - hint
    while (offset < most) {
      element = array[base + hint + offset]
      order = resumable === undefined ? number(plain(key, element)) : number(yield* resumable(key, element))
      if (order < 0) break
      last = offset
      offset = offset * 2 + 1
    }
    if (offset > most) offset = most
    last += hint
    offset += hint
  }
  last++
  while (last < offset) {
    const middle = last + ((offset - last) >> 1)
    element = array[base + middle]
    order = resumable === undefined ? number(plain(key, element)) : number(yield* resumable(key, element))
    if (order < 0) offset = middle
    else last = middle + 1
  }
  return offset
}
