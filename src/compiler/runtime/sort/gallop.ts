/** The search of TimSort: from a hint in steps that double ("galloping"), then by bisection. */
import { comparisonResult, type Comparator, type Suspending } from './comparator.ts'

/** The index for `key`, before any equal element. */
export function* gallopLeft(
  { plain, resumable }: Comparator,
  array: any[],
  key: unknown,
  base: number,
  length: number,
  hint: number,
): Suspending<number> {
  let last = 0
  let offset = 1
  let element = array[base + hint]
  let order =
    resumable === undefined
      ? comparisonResult(plain(element, key))
      : comparisonResult(yield* resumable(element, key))
  if (order < 0) {
    const most = length - hint
    while (offset < most) {
      element = array[base + hint + offset]
      order =
        resumable === undefined
          ? comparisonResult(plain(element, key))
          : comparisonResult(yield* resumable(element, key))
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
      order =
        resumable === undefined
          ? comparisonResult(plain(element, key))
          : comparisonResult(yield* resumable(element, key))
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
    order =
      resumable === undefined
        ? comparisonResult(plain(element, key))
        : comparisonResult(yield* resumable(element, key))
    if (order < 0) last = middle + 1
    else offset = middle
  }
  return offset
}

/** The index for `key`, after any equal element. */
export function* gallopRight(
  { plain, resumable }: Comparator,
  array: any[],
  key: unknown,
  base: number,
  length: number,
  hint: number,
): Suspending<number> {
  let last = 0
  let offset = 1
  let element = array[base + hint]
  let order =
    resumable === undefined
      ? comparisonResult(plain(key, element))
      : comparisonResult(yield* resumable(key, element))
  if (order < 0) {
    const most = hint + 1
    while (offset < most) {
      element = array[base + hint - offset]
      order =
        resumable === undefined
          ? comparisonResult(plain(key, element))
          : comparisonResult(yield* resumable(key, element))
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
      order =
        resumable === undefined
          ? comparisonResult(plain(key, element))
          : comparisonResult(yield* resumable(key, element))
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
    order =
      resumable === undefined
        ? comparisonResult(plain(key, element))
        : comparisonResult(yield* resumable(key, element))
    if (order < 0) offset = middle
    else last = middle + 1
  }
  return offset
}
