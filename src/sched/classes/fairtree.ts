import { ListNode } from '../../arena/trees/list.ts'
import { IntrusiveTree } from '../../arena/trees/tree.ts'
import { Entity } from '../core/entity.ts'

// The tree's links use the words of the list node: an entity is on one queue at most.
const left = Entity.links + ListNode.next
const right = Entity.links + ListNode.prev
const height = Entity.links + ListNode.list
/** Which of two equal deadlines came first. */
export const fairOrder: number = Entity.links + ListNode.epoch

/**
 * The queued entities of a fair run queue in order of virtual deadline; each node also knows the least
 * vruntime under it. So the earliest deadline among those that are eligible is found in one walk down.
 */
export class FairTree extends IntrusiveTree {
  private readonly f64: Float64Array

  constructor(i32: Int32Array, f64: Float64Array) {
    super(i32, { left, right, height })
    this.f64 = f64
  }

  protected override before(a: number, b: number): boolean {
    const difference = this.f64[(a + Entity.deadline) >> 1] - this.f64[(b + Entity.deadline) >> 1]
    if (difference !== 0) return difference < 0
    return ((this.i32[a + fairOrder] - this.i32[b + fairOrder]) | 0) < 0
  }

  protected override augment(node: number): void {
    const { i32, f64 } = this
    let least = f64[(node + Entity.vruntime) >> 1]
    const l = i32[node + left]
    if (l !== 0) least = Math.min(least, f64[(l + Entity.minVruntime) >> 1])
    const r = i32[node + right]
    if (r !== 0) least = Math.min(least, f64[(r + Entity.minVruntime) >> 1])
    f64[(node + Entity.minVruntime) >> 1] = least
  }

  /** The node with the earliest deadline among those whose vruntime is at most `limit`, or 0. */
  earliestEligible(root: number, limit: number): number {
    const { i32, f64 } = this
    let node = i32[root]
    if (node !== 0 && f64[(node + Entity.minVruntime) >> 1] > limit) return 0
    while (node !== 0) {
      const l = i32[node + left]
      if (l !== 0 && f64[(l + Entity.minVruntime) >> 1] <= limit) node = l
      else if (f64[(node + Entity.vruntime) >> 1] <= limit) return node
      else node = i32[node + right]
    }
    return 0
  }
}
