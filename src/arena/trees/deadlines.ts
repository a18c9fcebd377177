import type { Arena } from '../memory/arena.ts'
import { assert } from '../assert.ts'
import { float64, type Layout, record, word } from '../memory/record.ts'
import { IntrusiveTree } from './tree.ts'

/**
 * A deadline queue: timers in order of time, first come first among equals. An intrusive tree, so insert and
 * remove are O(log n) in the worst case, the next deadline is one read, nothing is allocated, and it holds as
 * many timers as there are records. The caller holds the lock that guards it, or is its only user.
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

/**
 * The queue itself. `first` saves the walk to the leftmost node each time a CPU asks how long it may sleep.
 */
export const DeadlineQueue: Layout<'root' | 'first' | 'count' | 'order'> = record('deadline queue', {
  root: word,
  first: word,
  count: word,
  order: word,
})

const { left, right, height, order, deadline } = DeadlineNode

class DeadlineTree extends IntrusiveTree {
  private readonly f64: Float64Array

  constructor({ i32, f64 }: Arena) {
    super(i32, { left, right, height })
    this.f64 = f64
  }

  override before(a: number, b: number): boolean {
    const difference = this.f64[(a + deadline) >> 1] - this.f64[(b + deadline) >> 1]
    if (difference !== 0) return difference < 0
    return ((this.i32[a + order] - this.i32[b + order]) | 0) < 0
  }
}

export class Deadlines {
  private readonly i32: Int32Array
  private readonly f64: Float64Array
  private readonly queue: number
  private readonly tree: DeadlineTree

  /** A view of the queue at pointer `queue`; zeroed memory is an empty queue. */
  constructor(arena: Arena, queue: number) {
    this.i32 = arena.i32
    this.f64 = arena.f64
    this.queue = queue
    this.tree = new DeadlineTree(arena)
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
    return this.tree.isQueued(node)
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
    i32[node + order] = i32[queue + DeadlineQueue.order]
    i32[queue + DeadlineQueue.order] = (i32[queue + DeadlineQueue.order] + 1) | 0
    const earliest = i32[queue + DeadlineQueue.first]
    if (earliest === 0 || this.tree.before(node, earliest)) i32[queue + DeadlineQueue.first] = node
    this.tree.insert(queue + DeadlineQueue.root, node)
    i32[queue + DeadlineQueue.count]++
  }

  remove(node: number): void {
    const { i32, queue } = this
    assert(i32[node + height] !== 0, 'removed a timer that is on no deadline queue')
    this.tree.remove(queue + DeadlineQueue.root, node)
    i32[queue + DeadlineQueue.count]--
    if (i32[queue + DeadlineQueue.first] === node) {
      i32[queue + DeadlineQueue.first] = this.tree.first(queue + DeadlineQueue.root)
    }
  }

  /**
   * Recovery: makes the queue hold exactly these nodes, whatever it and they were in the middle of. Each
   * keeps its deadline, and its place among equals. A node that was on the queue and is not in the list still
   * says that it is queued: call `forget` before it is used.
   */
  rebuild(nodes: readonly number[]): void {
    const { i32, queue } = this
    i32[queue + DeadlineQueue.root] = 0
    i32[queue + DeadlineQueue.first] = 0
    i32[queue + DeadlineQueue.count] = 0
    for (const node of nodes.toSorted((a, b) => (this.tree.before(a, b) ? -1 : 1))) {
      i32[node + height] = 0
      this.insert(node, this.deadlineOf(node))
    }
  }

  /** The node is on no queue, whatever a death has left in it. */
  forget(node: number): void {
    this.i32[node + height] = 0
  }

  /** Takes off and returns the earliest timer that is due at `now`, or 0. */
  expire(now: number): number {
    const node = this.first()
    if (node === 0 || this.f64[(node + deadline) >> 1] > now) return 0
    this.remove(node)
    return node
  }
}
