/**
 * Sorting with a comparator that may suspend. A program can observe the order of the calls, so this is the
 * engine's own algorithm for arrays, with the same comparisons.
 */
import { needResched, PREEMPTED } from '../../../coroutine/core/coroutine.ts'
import { define, part, removeAt } from '../../../coroutine/core/define.ts'
import { gallop } from './gallop.ts'
import { frames, rest } from '../../../coroutine/core/frames.ts'
import { comparisonResult, type Comparator, type Suspending } from './comparator.ts'

/**
 * Sorts in place, ascending by `compare`, without undefined elements. Up to `insertionMost` elements, it uses
 * only insertion, as some engines do.
 */
export function* timSort(work: any[], compare: Comparator, insertionMost: number): Suspending<void> {
  const { length } = work
  if (length < 2) return
  const sort = new TimSort(work, compare)
  if (length <= insertionMost) yield* sort.insert(0, 0, length)
  else yield* sort.run()
}

const originals = { sort: Array.prototype.sort, toSorted: Array.prototype.toSorted }

/**
 * Up to how many elements this engine's `sort` or `toSorted` uses only insertion: its second comparison shows
 * it.
 */
export function insertionMost(method: 'sort' | 'toSorted'): number {
  let most = 2
  for (let length = 3; length <= 64; length++) {
    // One by one, because a program may have an accessor under an index of `Object.prototype`.
    const list: number[] = []
    for (let k = 0; k < length; k++) define(list, k, k > 2 ? k : (k + 2) % 3)
    let comparisons = 0
    let byInsertion = false
    const compare = (left: number, right: number): number => {
      if (++comparisons === 2) byInsertion = left === 2 || right === 2
      return left - right
    }
    Reflect.apply(originals[method], list, [compare])
    if (!byInsertion) break
    most = length
  }
  return most
}

const gallopAfter = 7

class TimSort {
  readonly #work: any[]
  readonly #compare: Comparator
  readonly #bases: number[] = []
  readonly #lengths: number[] = []
  #minGallop = gallopAfter

  constructor(work: any[], compare: Comparator) {
    this.#work = work
    this.#compare = compare
  }

  *run(): Suspending<void> {
    let low = 0
    let remaining = this.#work.length
    const minimum = minRunLength(remaining)
    while (remaining !== 0) {
      let length = yield* this.#countRun(low, low + remaining)
      if (length < minimum) {
        const forced = Math.min(minimum, remaining)
        yield* this.insert(low, low + length, low + forced)
        length = forced
      }
      define(this.#bases, this.#bases.length, low)
      define(this.#lengths, this.#lengths.length, length)
      yield* this.#collapse()
      low += length
      remaining -= length
      if (needResched()) yield PREEMPTED
    }
    yield* this.#collapseAll()
  }

  *#countRun(from: number, high: number): Suspending<number> {
    const work = this.#work
    const compare = this.#compare
    let low = from + 1
    if (low === high) return 1
    let length = 2
    let previous = work[low]
    let answer = compare(previous, work[low - 1])
    if (frames.u !== 0) answer = yield* rest()
    const first = comparisonResult(answer)
    const descending = first < 0
    for (low++; low < high; low++) {
      const current = work[low]
      let answer = compare(current, previous)
      if (frames.u !== 0) answer = yield* rest()
      const order = comparisonResult(answer)
      if (descending ? order >= 0 : order < 0) break
      previous = current
      length++
    }
    if (descending) {
      for (let left = from, right = from + length - 1; left < right; left++, right--) {
        const held = work[left]
        work[left] = work[right]
        work[right] = held
      }
    }
    return length
  }

  *insert(low: number, sorted: number, high: number): Suspending<void> {
    const work = this.#work
    const compare = this.#compare
    for (let start = low === sorted ? sorted + 1 : sorted; start < high; start++) {
      let left = low
      let right = start
      const pivot = work[right]
      while (left < right) {
        const middle = left + ((right - left) >> 1)
        let answer = compare(pivot, work[middle])
        if (frames.u !== 0) answer = yield* rest()
        const order = comparisonResult(answer)
        if (order < 0) right = middle
        else left = middle + 1
      }
      for (let at = start; at > left; at--) work[at] = work[at - 1]
      work[left] = pivot
    }
  }

  #balanced(at: number): boolean {
    const lengths = this.#lengths
    return at < 2 || lengths[at - 2]! > lengths[at - 1]! + lengths[at]!
  }

  *#collapse(): Suspending<void> {
    const lengths = this.#lengths
    while (lengths.length > 1) {
      let at = lengths.length - 2
      if (!this.#balanced(at + 1) || !this.#balanced(at)) {
        if (lengths[at - 1]! < lengths[at + 1]!) at--
        yield* this.#mergeAt(at)
      } else if (lengths[at]! <= lengths[at + 1]!) yield* this.#mergeAt(at)
      else break
    }
  }

  *#collapseAll(): Suspending<void> {
    const lengths = this.#lengths
    while (lengths.length > 1) {
      let at = lengths.length - 2
      if (at > 0 && lengths[at - 1]! < lengths[at + 1]!) at--
      yield* this.#mergeAt(at)
    }
  }

  *#mergeAt(at: number): Suspending<void> {
    const work = this.#work
    let baseA = this.#bases[at]!
    let lengthA = this.#lengths[at]!
    const baseB = this.#bases[at + 1]!
    let lengthB = this.#lengths[at + 1]!
    this.#lengths[at] = lengthA + lengthB
    removeAt(this.#bases, at + 1)
    removeAt(this.#lengths, at + 1)
    const skipped = yield* gallop(this.#compare, true, work, work[baseB], baseA, lengthA, 0)
    baseA += skipped
    lengthA -= skipped
    if (lengthA === 0) return
    lengthB = yield* gallop(
      this.#compare,
      false,
      work,
      work[baseA + lengthA - 1],
      baseB,
      lengthB,
      lengthB - 1,
    )
    if (lengthB === 0) return
    if (lengthA <= lengthB) yield* this.#mergeLow(lengthA, baseA, lengthB, baseB)
    else yield* this.#mergeHigh(lengthA, baseA, lengthB, baseB)
  }

  /** Merges from the left; A is the shorter. */
  *#mergeLow(countA: number, baseA: number, countB: number, baseB: number): Suspending<void> {
    const work = this.#work
    const compare = this.#compare
    let lengthA = countA
    let lengthB = countB
    const held = part(work, baseA, baseA + lengthA)
    let to = baseA
    let a = 0
    let b = baseB
    work[to++] = work[b++]
    done: {
      copyB: {
        if (--lengthB === 0) break done
        if (lengthA === 1) break copyB
        let minGallop = this.#minGallop
        for (;;) {
          let winsA = 0
          let winsB = 0
          for (;;) {
            let answer = compare(work[b], held[a])
            if (frames.u !== 0) answer = yield* rest()
            const order = comparisonResult(answer)
            if (order < 0) {
              work[to++] = work[b++]
              winsB++
              winsA = 0
              if (--lengthB === 0) break done
              if (winsB >= minGallop) break
            } else {
              work[to++] = held[a++]
              winsA++
              winsB = 0
              if (--lengthA === 1) break copyB
              if (winsA >= minGallop) break
            }
          }
          minGallop++
          do {
            minGallop = Math.max(1, minGallop - 1)
            this.#minGallop = minGallop
            winsA = yield* gallop(this.#compare, true, held, work[b], a, lengthA, 0)
            if (winsA > 0) {
              for (let k = 0; k < winsA; k++) work[to++] = held[a++]
              lengthA -= winsA
              if (lengthA === 1) break copyB
              if (lengthA === 0) break done
            }
            work[to++] = work[b++]
            if (--lengthB === 0) break done
            winsB = yield* gallop(this.#compare, false, work, held[a], b, lengthB, 0)
            if (winsB > 0) {
              for (let k = 0; k < winsB; k++) work[to++] = work[b++]
              lengthB -= winsB
              if (lengthB === 0) break done
            }
            work[to++] = held[a++]
            if (--lengthA === 1) break copyB
          } while (winsA >= gallopAfter || winsB >= gallopAfter)
          minGallop++
          this.#minGallop = minGallop
          if (needResched()) yield PREEMPTED
        }
      }
      for (let k = 0; k < lengthB; k++) work[to++] = work[b++]
      work[to] = held[a]
      return
    }
    for (let k = 0; k < lengthA; k++) work[to++] = held[a++]
  }

  /** Merges from the right; B is the shorter. */
  *#mergeHigh(countA: number, baseA: number, countB: number, baseB: number): Suspending<void> {
    const work = this.#work
    const compare = this.#compare
    let lengthA = countA
    let lengthB = countB
    const held = part(work, baseB, baseB + lengthB)
    let to = baseB + lengthB - 1
    let b = lengthB - 1
    let a = baseA + lengthA - 1
    work[to--] = work[a--]
    done: {
      copyA: {
        if (--lengthA === 0) break done
        if (lengthB === 1) break copyA
        let minGallop = this.#minGallop
        for (;;) {
          let winsA = 0
          let winsB = 0
          for (;;) {
            let answer = compare(held[b], work[a])
            if (frames.u !== 0) answer = yield* rest()
            const order = comparisonResult(answer)
            if (order < 0) {
              work[to--] = work[a--]
              winsA++
              winsB = 0
              if (--lengthA === 0) break done
              if (winsA >= minGallop) break
            } else {
              work[to--] = held[b--]
              winsB++
              winsA = 0
              if (--lengthB === 1) break copyA
              if (winsB >= minGallop) break
            }
          }
          minGallop++
          do {
            minGallop = Math.max(1, minGallop - 1)
            this.#minGallop = minGallop
            let place = yield* gallop(this.#compare, true, work, held[b], baseA, lengthA, lengthA - 1)
            winsA = lengthA - place
            if (winsA > 0) {
              for (let k = 0; k < winsA; k++) work[to--] = work[a--]
              lengthA -= winsA
              if (lengthA === 0) break done
            }
            work[to--] = held[b--]
            if (--lengthB === 1) break copyA
            place = yield* gallop(this.#compare, false, held, work[a], 0, lengthB, lengthB - 1)
            winsB = lengthB - place
            if (winsB > 0) {
              for (let k = 0; k < winsB; k++) work[to--] = held[b--]
              lengthB -= winsB
              if (lengthB === 1) break copyA
              if (lengthB === 0) break done
            }
            work[to--] = work[a--]
            if (--lengthA === 0) break done
          } while (winsA >= gallopAfter || winsB >= gallopAfter)
          minGallop++
          this.#minGallop = minGallop
          if (needResched()) yield PREEMPTED
        }
      }
      for (let k = 0; k < lengthA; k++) work[to--] = work[a--]
      work[to] = held[b]
      return
    }
    for (let k = 0; k < lengthB; k++) work[to--] = held[b--]
  }
}

function minRunLength(length: number): number {
  let n = length
  let odd = 0
  while (n >= 64) {
    odd |= n & 1
    n >>= 1
  }
  return n + odd
}
