import { IntrusiveTree } from '../../arena/trees/tree.ts'
import { TaskRecord } from './taskrecord.ts'

const { channel, waitPriority, waitOrder } = TaskRecord

/**
 * The wait tree: every task that sleeps on a channel, in order of channel, then priority, then arrival. One
 * tree, guarded by the sleep lock. A channel is any integer but 0.
 */
export class WaitTree extends IntrusiveTree {
  private readonly root: number
  private readonly order: number

  /** `at`: two words, the root and the count of arrivals; zeroed memory is an empty tree. */
  constructor(i32: Int32Array, at: number) {
    super(i32, { left: TaskRecord.waitLeft, right: TaskRecord.waitRight, height: TaskRecord.waitHeight })
    this.root = at
    this.order = at + 1
  }

  protected override before(a: number, b: number): boolean {
    const { i32 } = this
    if (i32[a + channel] !== i32[b + channel]) return i32[a + channel] < i32[b + channel]
    if (i32[a + waitPriority] !== i32[b + waitPriority]) return i32[a + waitPriority] < i32[b + waitPriority]
    return ((i32[a + waitOrder] - i32[b + waitOrder]) | 0) < 0
  }

  add(task: number, chan: number, priority: number): void {
    const { i32 } = this
    i32[task + channel] = chan
    i32[task + waitPriority] = priority
    i32[task + waitOrder] = i32[this.order]
    i32[this.order] = (i32[this.order] + 1) | 0
    this.insert(this.root, task)
  }

  take(task: number): void {
    this.remove(this.root, task)
    this.i32[task + channel] = 0
  }

  /** Recovery: makes the tree hold exactly these tasks, whatever state it and they are in. */
  rebuild(tasks: readonly number[]): void {
    const { i32, root, height } = this
    i32[root] = 0
    for (const task of tasks) i32[task + height] = 0
    for (const task of tasks) this.insert(root, task)
  }

  /** The task to wake first on a channel, or 0. */
  firstOn(chan: number): number {
    const { i32, left, right } = this
    let found = 0
    let node = i32[this.root]
    while (node !== 0) {
      const at = i32[node + channel]
      if (at === chan) found = node
      node = at < chan ? i32[node + right] : i32[node + left]
    }
    return found
  }
}
