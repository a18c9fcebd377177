import type { Arena } from './arena.ts'
import { assert } from './assert.ts'
import { float64, type Layout, record, word } from './record.ts'

/**
 * A deadline queue: timers in order of time, first come first among equals. An intrusive AVL tree, so insert and
 * remove are O(log n) in the worst case, the next deadline is known at once, nothing is allocated, and it holds as
 * many timers as there are records. The caller holds the lock that guards it, or is the only one to use it.
 */
export const DeadlineNode: Layout<'deadline' | 'left' | 'right' | 'height' | 'order'> = record(
  'deadline node',
  {
    deadline: float64,
    left: word,
    right: word,
    /** 0: on no queue. */
    height: word,
    order: word,
  },
)

/** The queue itself. `first` saves the walk to the leftmost node each time a CPU asks how long it may sleep. */
export const DeadlineQueue: Layout<'root' | 'first' | 'count' | 'order'> = record('deadline queue', {
  root: word,
  first: word,
  count: word,
  order: word,
})

const { left, right, height, order, deadline } = DeadlineNode

export class Deadlines {
  private readonly i32: Int32Array
  private readonly f64: Float64Array
  private readonly queue: number

  /** A view of the queue at pointer `queue`; zeroed memory is an empty queue. */
  constructor(arena: Arena, queue: number) {
    this.i32 = arena.i32
    this.f64 = arena.f64
    this.queue = queue
  }

  get count(): number {
    return this.i32[this.queue + DeadlineQueue.count]
  }

  /** The node with the earliest deadline, or 0. */
  first(): number {
    return this.i32[this.queue + DeadlineQueue.first]
  }

  /** The earliest deadline, or Infinity. */
  next(): number {
    const node = this.i32[this.queue + DeadlineQueue.first]
    return node === 0 ? Infinity : this.f64[(node + deadline) >> 1]
  }

  isQueued(node: number): boolean {
    return this.i32[node + height] !== 0
  }

  deadlineOf(node: number): number {
    return this.f64[(node + deadline) >> 1]
  }

  insert(node: number, at: number): void {
    const { i32, queue } = this
    assert(node !== 0 && (node & 1) === 0, 'a deadline node starts on an even word')
    assert(i32[node + height] === 0, 'the timer is on a deadline queue already')
    assert(at === at, 'a deadline is a number')
    this.f64[(node + deadline) >> 1] = at
    i32[node + left] = 0
    i32[node + right] = 0
    i32[node + height] = 1
    i32[node + order] = i32[queue + DeadlineQueue.order]
    i32[queue + DeadlineQueue.order] = (i32[queue + DeadlineQueue.order] + 1) | 0
    const earliest = i32[queue + DeadlineQueue.first]
    if (earliest === 0 || this.before(node, earliest)) i32[queue + DeadlineQueue.first] = node
    i32[queue + DeadlineQueue.root] = this.insertUnder(i32[queue + DeadlineQueue.root], node)
    i32[queue + DeadlineQueue.count]++
  }

  remove(node: number): void {
    const { i32, queue } = this
    assert(i32[node + height] !== 0, 'removed a timer that is on no deadline queue')
    const before = i32[queue + DeadlineQueue.root]
    assert(before !== 0, 'foreign removal: this deadline queue is empty')
    i32[queue + DeadlineQueue.root] = this.removeUnder(before, node)
    i32[node + height] = 0
    i32[node + left] = 0
    i32[node + right] = 0
    i32[queue + DeadlineQueue.count]--
    if (i32[queue + DeadlineQueue.first] === node) i32[queue + DeadlineQueue.first] = this.leftmost()
  }

  /**
   * Recovery: makes the queue hold exactly these nodes, whatever it and they were in the middle of. Each keeps its deadline,
   * and its place among equals.
   */
  rebuild(nodes: readonly number[]): void {
    const { i32, queue } = this
    i32[queue + DeadlineQueue.root] = 0
    i32[queue + DeadlineQueue.first] = 0
    i32[queue + DeadlineQueue.count] = 0
    for (const node of nodes.toSorted((a, b) => (this.before(a, b) ? -1 : 1))) {
      i32[node + height] = 0
      this.insert(node, this.deadlineOf(node))
    }
  }

  /** Takes off and returns the earliest timer that is due at `now`, or 0. */
  expire(now: number): number {
    const node = this.first()
    if (node === 0 || this.f64[(node + deadline) >> 1] > now) return 0
    this.remove(node)
    return node
  }

  private before(a: number, b: number): boolean {
    const difference = this.f64[(a + deadline) >> 1] - this.f64[(b + deadline) >> 1]
    if (difference !== 0) return difference < 0
    return ((this.i32[a + order] - this.i32[b + order]) | 0) < 0
  }

  private leftmost(): number {
    const i32 = this.i32
    let node = i32[this.queue + DeadlineQueue.root]
    if (node === 0) return 0
    while (i32[node + left] !== 0) node = i32[node + left]
    return node
  }

  // Recursion is bounded by the height: 1.44 log2 n, 45 levels for a billion timers.

  private insertUnder(root: number, node: number): number {
    if (root === 0) return node
    const i32 = this.i32
    const side = this.before(node, root) ? left : right
    i32[root + side] = this.insertUnder(i32[root + side], node)
    return this.balance(root)
  }

  private removeUnder(root: number, node: number): number {
    assert(root !== 0, 'foreign removal: the timer is not on this deadline queue')
    const i32 = this.i32
    if (root !== node) {
      const side = this.before(node, root) ? left : right
      i32[root + side] = this.removeUnder(i32[root + side], node)
      return this.balance(root)
    }
    if (i32[root + left] === 0) return i32[root + right]
    if (i32[root + right] === 0) return i32[root + left]
    let successor = i32[root + right]
    while (i32[successor + left] !== 0) successor = i32[successor + left]
    const rest = this.removeUnder(i32[root + right], successor)
    i32[successor + right] = rest
    i32[successor + left] = i32[root + left]
    return this.balance(successor)
  }

  private heightOf(node: number): number {
    return node === 0 ? 0 : this.i32[node + height]
  }

  private updateHeight(node: number): void {
    const i32 = this.i32
    i32[node + height] = 1 + Math.max(this.heightOf(i32[node + left]), this.heightOf(i32[node + right]))
  }

  private balance(node: number): number {
    const i32 = this.i32
    const lean = this.heightOf(i32[node + left]) - this.heightOf(i32[node + right])
    assert(lean >= -2 && lean <= 2, 'an AVL tree leans by at most two while it is mended')
    if (lean === 2) {
      const child = i32[node + left]
      if (this.heightOf(i32[child + left]) < this.heightOf(i32[child + right])) {
        i32[node + left] = this.rotate(child, right, left)
      }
      return this.rotate(node, left, right)
    }
    if (lean === -2) {
      const child = i32[node + right]
      if (this.heightOf(i32[child + right]) < this.heightOf(i32[child + left])) {
        i32[node + right] = this.rotate(child, left, right)
      }
      return this.rotate(node, right, left)
    }
    this.updateHeight(node)
    return node
  }

  /** Lifts the child on side `up` over `node`. */
  private rotate(node: number, up: number, down: number): number {
    const i32 = this.i32
    const child = i32[node + up]
    i32[node + up] = i32[child + down]
    i32[child + down] = node
    this.updateHeight(node)
    this.updateHeight(child)
    return child
  }
}
