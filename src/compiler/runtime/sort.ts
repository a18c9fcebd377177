/**
 * Sorting with a comparator that may stop. The order in which a comparator is called can be seen, so these are the
 * engine's own algorithms, comparison for comparison: TimSort for arrays, a merge sort for typed arrays.
 */
import { needResched, PREEMPTED, type Twin } from '../../coroutine/coroutine.ts'

type Stops<T> = Generator<number, T, unknown>
type Comparator = (left: any, right: any) => unknown

/** What is compared with what: the comparator, or its resumable form where it has one. */
export interface Order {
  readonly plain: Comparator
  readonly resumable: Twin | undefined
}

/**
 * Ascending by `order`, undefined not among them. Sorts in place. Up to `insertionMost` elements, only by insertion:
 * some engines do.
 */
export function* timSort(work: any[], order: Order, insertionMost: number): Stops<void> {
  const { length } = work
  if (length < 2) return
  const sort = new TimSort(work, order)
  if (length <= insertionMost) yield* sort.insert(0, 0, length)
  else yield* sort.run()
}

/** Up to how many elements this engine's `sort` or `toSorted` sorts only by insertion: its second comparison tells. */
export function insertionMost(method: 'sort' | 'toSorted'): number {
  let most = 2
  for (let length = 3; length <= 64; length++) {
    const list = [2, 0, 1, ...Array.from({ length: length - 3 }, (_, k) => k + 3)]
    let comparisons = 0
    let byInsertion = false
    list[method]((left, right) => {
      if (++comparisons === 2) byInsertion = left === 2 || right === 2
      return left - right
    })
    if (!byInsertion) break
    most = length
  }
  return most
}

const gallopAfter = 7

class TimSort {
  readonly #work: any[]
  readonly #plain: Comparator
  readonly #resumable: Twin | undefined
  readonly #bases: number[] = []
  readonly #lengths: number[] = []
  #minGallop = gallopAfter

  constructor(work: any[], { plain, resumable }: Order) {
    this.#work = work
    this.#plain = plain
    this.#resumable = resumable
  }

  *run(): Stops<void> {
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
      this.#bases.push(low)
      this.#lengths.push(length)
      yield* this.#collapse()
      low += length
      remaining -= length
      if (needResched()) yield PREEMPTED
    }
    yield* this.#collapseAll()
  }

  *#countRun(from: number, high: number): Stops<number> {
    const work = this.#work
    const plain = this.#plain
    const resumable = this.#resumable
    let low = from + 1
    if (low === high) return 1
    let length = 2
    let previous = work[low]
    const first =
      resumable === undefined
        ? number(plain(previous, work[low - 1]))
        : number(yield* resumable(previous, work[low - 1]))
    const descending = first < 0
    for (low++; low < high; low++) {
      const current = work[low]
      const order =
        resumable === undefined
          ? number(plain(current, previous))
          : number(yield* resumable(current, previous))
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

  *insert(low: number, sorted: number, high: number): Stops<void> {
    const work = this.#work
    const plain = this.#plain
    const resumable = this.#resumable
    for (let start = low === sorted ? sorted + 1 : sorted; start < high; start++) {
      let left = low
      let right = start
      const pivot = work[right]
      while (left < right) {
        const middle = left + ((right - left) >> 1)
        const order =
          resumable === undefined
            ? number(plain(pivot, work[middle]))
            : number(yield* resumable(pivot, work[middle]))
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

  *#collapse(): Stops<void> {
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

  *#collapseAll(): Stops<void> {
    const lengths = this.#lengths
    while (lengths.length > 1) {
      let at = lengths.length - 2
      if (at > 0 && lengths[at - 1]! < lengths[at + 1]!) at--
      yield* this.#mergeAt(at)
    }
  }

  *#mergeAt(at: number): Stops<void> {
    const work = this.#work
    let baseA = this.#bases[at]!
    let lengthA = this.#lengths[at]!
    const baseB = this.#bases[at + 1]!
    let lengthB = this.#lengths[at + 1]!
    this.#lengths[at] = lengthA + lengthB
    this.#bases.splice(at + 1, 1)
    this.#lengths.splice(at + 1, 1)
    const skipped = yield* this.#gallopRight(work, work[baseB], baseA, lengthA, 0)
    baseA += skipped
    lengthA -= skipped
    if (lengthA === 0) return
    lengthB = yield* this.#gallopLeft(work, work[baseA + lengthA - 1], baseB, lengthB, lengthB - 1)
    if (lengthB === 0) return
    if (lengthA <= lengthB) yield* this.#mergeLow(lengthA, baseA, lengthB, baseB)
    else yield* this.#mergeHigh(lengthA, baseA, lengthB, baseB)
  }

  /** Where `key` belongs, before any equal to it. */
  *#gallopLeft(array: any[], key: unknown, base: number, length: number, hint: number): Stops<number> {
    const plain = this.#plain
    const resumable = this.#resumable
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
  *#gallopRight(array: any[], key: unknown, base: number, length: number, hint: number): Stops<number> {
    const plain = this.#plain
    const resumable = this.#resumable
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

  /** Merges from the left; A is the shorter. */
  *#mergeLow(countA: number, baseA: number, countB: number, baseB: number): Stops<void> {
    const work = this.#work
    const plain = this.#plain
    const resumable = this.#resumable
    let lengthA = countA
    let lengthB = countB
    const held = work.slice(baseA, baseA + lengthA)
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
            const order =
              resumable === undefined
                ? number(plain(work[b], held[a]))
                : number(yield* resumable(work[b], held[a]))
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
            winsA = yield* this.#gallopRight(held, work[b], a, lengthA, 0)
            if (winsA > 0) {
              for (let k = 0; k < winsA; k++) work[to++] = held[a++]
              lengthA -= winsA
              if (lengthA === 1) break copyB
              if (lengthA === 0) break done
            }
            work[to++] = work[b++]
            if (--lengthB === 0) break done
            winsB = yield* this.#gallopLeft(work, held[a], b, lengthB, 0)
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
  *#mergeHigh(countA: number, baseA: number, countB: number, baseB: number): Stops<void> {
    const work = this.#work
    const plain = this.#plain
    const resumable = this.#resumable
    let lengthA = countA
    let lengthB = countB
    const held = work.slice(baseB, baseB + lengthB)
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
            const order =
              resumable === undefined
                ? number(plain(held[b], work[a]))
                : number(yield* resumable(held[b], work[a]))
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
            let place = yield* this.#gallopRight(work, held[b], baseA, lengthA, lengthA - 1)
            winsA = lengthA - place
            if (winsA > 0) {
              for (let k = 0; k < winsA; k++) work[to--] = work[a--]
              lengthA -= winsA
              if (lengthA === 0) break done
            }
            work[to--] = held[b--]
            if (--lengthB === 1) break copyA
            place = yield* this.#gallopLeft(held, work[a], 0, lengthB, lengthB - 1)
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

/** A comparator's answer: what is not a number counts as equal. */
function number(answer: unknown): number {
  const value = typeof answer === 'number' ? answer : +(answer as number)
  return value === value ? value : 0
}

/** For typed arrays: halves, then a merge, from one copy into the other. */
export function* mergeSort(values: any[], order: Order): Stops<any[]> {
  const target = values.slice()
  if (values.length > 1) yield* split(values.slice(), 0, values.length, target, order)
  return target
}

function* split(from: any[], low: number, high: number, into: any[], order: Order): Stops<void> {
  const middle = low + ((high - low) >> 1)
  if (middle - low > 1) yield* split(into, low, middle, from, order)
  if (high - middle > 1) yield* split(into, middle, high, from, order)
  const { plain, resumable } = order
  let left = low
  let right = middle
  for (let at = low; at < high; at++) {
    if (left < middle && right >= high) into[at] = from[left++]
    else if (left < middle) {
      const a = from[left]
      const b = from[right]
      const answer = resumable === undefined ? number(plain(a, b)) : number(yield* resumable(a, b))
      if (answer <= 0) into[at] = from[left++]
      else into[at] = from[right++]
    } else into[at] = from[right++]
  }
  if (needResched()) yield PREEMPTED
}
