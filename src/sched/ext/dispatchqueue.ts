import { assert } from '../../arena/assert.ts'
import {
  initList,
  listFirst,
  ListNode,
  listNext,
  listPush,
  listRemove,
  listUnshift,
} from '../../arena/trees/list.ts'
import { lockRank } from '../../arena/sync/lockorder.ts'
import { initLock } from '../../arena/sync/spinlock.ts'
import { IntrusiveTree } from '../../arena/trees/tree.ts'
import { Entity } from '../core/entity.ts'
import { DispatchQueue, QUEUE_FIFO, QUEUE_UNUSED, QUEUE_VTIME } from './extlayout.ts'

/**
 * Dispatch queues: where a policy puts tasks until a CPU takes them to run. First come first served, or by
 * virtual time. The queue's lock is held in all functions, and so is the lock of the run queue that the
 * entity belongs to: so the place of an entity does not change while a thread holds either.
 */

const left = Entity.links + ListNode.next
const right = Entity.links + ListNode.prev
const height = Entity.links + ListNode.list
/** The order of arrival, for equal virtual times. */
const arrival = Entity.links + ListNode.epoch

const { vruntime } = Entity

class VtimeTree extends IntrusiveTree {
  private readonly f64: Float64Array

  constructor(i32: Int32Array, f64: Float64Array) {
    super(i32, { left, right, height })
    this.f64 = f64
  }

  protected override before(a: number, b: number): boolean {
    const difference = this.f64[(a + vruntime) >> 1] - this.f64[(b + vruntime) >> 1]
    if (difference !== 0) return difference < 0
    return ((this.i32[a + arrival] - this.i32[b + arrival]) | 0) < 0
  }

  /** The first node under `node`, in order, that is accepted; or 0. */
  find(node: number, accepts: (se: number) => boolean): number {
    if (node === 0) return 0
    const found = this.find(this.i32[node + left], accepts)
    if (found !== 0) return found
    return accepts(node) ? node : this.find(this.i32[node + right], accepts)
  }
}

export class DispatchQueues {
  private readonly i32: Int32Array
  private readonly tree: VtimeTree

  constructor(i32: Int32Array, f64: Float64Array) {
    this.i32 = i32
    this.tree = new VtimeTree(i32, f64)
  }

  /** Once, by the thread that made the arena. */
  initialize(queue: number, number: number, order: number): void {
    const { i32 } = this
    initLock(i32, queue + DispatchQueue.lock, lockRank('dispatch queue'))
    i32[queue + DispatchQueue.number] = number
    Atomics.store(i32, queue + DispatchQueue.order, order)
    initList(i32, queue + DispatchQueue.list)
  }

  /** An empty queue takes this order from now on. */
  setOrder(queue: number, order: typeof QUEUE_FIFO | typeof QUEUE_VTIME): void {
    assert(this.i32[queue + DispatchQueue.count] === 0, 'the order of an empty queue alone can be chosen')
    Atomics.store(this.i32, queue + DispatchQueue.order, order)
  }

  insert(queue: number, se: number, front: boolean): void {
    const { i32 } = this
    const order = i32[queue + DispatchQueue.order]
    assert(order !== QUEUE_UNUSED, 'a task is put on a queue that is in use')
    if (order === QUEUE_VTIME) {
      i32[se + arrival] = i32[queue + DispatchQueue.arrivals]
      i32[queue + DispatchQueue.arrivals] = (i32[queue + DispatchQueue.arrivals] + 1) | 0
      this.tree.insert(queue + DispatchQueue.root, se)
    } else if (front) listUnshift(i32, queue + DispatchQueue.list, se + Entity.links)
    else listPush(i32, queue + DispatchQueue.list, se + Entity.links)
    Atomics.store(i32, queue + DispatchQueue.count, i32[queue + DispatchQueue.count] + 1)
  }

  remove(queue: number, se: number): void {
    const { i32 } = this
    if (i32[queue + DispatchQueue.order] === QUEUE_VTIME) this.tree.remove(queue + DispatchQueue.root, se)
    else listRemove(i32, queue + DispatchQueue.list, se + Entity.links)
    Atomics.store(i32, queue + DispatchQueue.count, i32[queue + DispatchQueue.count] - 1)
  }

  /** The first entity that is accepted, or 0. */
  find(queue: number, accepts: (se: number) => boolean): number {
    const { i32 } = this
    if (i32[queue + DispatchQueue.order] === QUEUE_VTIME) {
      return this.tree.find(i32[queue + DispatchQueue.root], accepts)
    }
    const list = queue + DispatchQueue.list
    for (let node = listFirst(i32, list); node !== 0; node = listNext(i32, list, node)) {
      if (accepts(node - Entity.links)) return node - Entity.links
    }
    return 0
  }

  /** Recovery: makes the queue empty, whatever state it is in. */
  reset(queue: number): void {
    const { i32 } = this
    i32[queue + DispatchQueue.root] = 0
    initList(i32, queue + DispatchQueue.list)
    Atomics.store(i32, queue + DispatchQueue.count, 0)
  }
}
