import { assert } from '../assert.ts'

/** Where a tree's links are in its nodes, in words from the node. A node on no tree has height 0. */
export interface TreeLinks {
  readonly left: number
  readonly right: number
  readonly height: number
}

/**
 * An intrusive, balanced (AVL) tree: the links live in the records, nothing is allocated, insert and remove
 * are O(log n). A subclass decides which of two nodes comes first, and may keep a summary of each subtree
 * (`augment`). `root` is the word that holds the root, so one object serves many trees. The caller holds the
 * lock that guards the tree.
 */
export abstract class IntrusiveTree {
  protected readonly i32: Int32Array
  protected readonly left: number
  protected readonly right: number
  protected readonly height: number

  constructor(i32: Int32Array, links: TreeLinks) {
    this.i32 = i32
    this.left = links.left
    this.right = links.right
    this.height = links.height
  }

  /** Whether `a` stands before `b`. Never true both ways, and false both ways only for a node and itself. */
  protected abstract before(a: number, b: number): boolean

  /**
   * Computes the summary of a node from its own fields and the summaries of its children. Without one,
   * nothing is kept.
   */
  protected augment(_node: number): void {}

  insert(root: number, node: number): void {
    const { i32 } = this
    assert(node !== 0, 'null cannot be put on a tree')
    assert(i32[node + this.height] === 0, 'double insert: the node is on a tree already')
    i32[node + this.left] = 0
    i32[node + this.right] = 0
    i32[node + this.height] = 1
    this.augment(node)
    i32[root] = this.insertUnder(i32[root], node)
  }

  remove(root: number, node: number): void {
    const { i32 } = this
    assert(i32[node + this.height] !== 0, 'removed a node that is on no tree')
    i32[root] = this.removeUnder(i32[root], node)
    i32[node + this.left] = 0
    i32[node + this.right] = 0
    i32[node + this.height] = 0
  }

  isQueued(node: number): boolean {
    return this.i32[node + this.height] !== 0
  }

  /** The first node, or 0. */
  first(root: number): number {
    const { i32, left } = this
    let node = i32[root]
    if (node === 0) return 0
    while (i32[node + left] !== 0) node = i32[node + left]
    return node
  }

  // Recursion is bounded by the height: 1.44 log2 n.

  private insertUnder(root: number, node: number): number {
    if (root === 0) return node
    const side = this.before(node, root) ? this.left : this.right
    this.i32[root + side] = this.insertUnder(this.i32[root + side], node)
    return this.balance(root)
  }

  private removeUnder(root: number, node: number): number {
    assert(root !== 0, 'foreign removal: the node is not on this tree')
    const { i32, left, right } = this
    if (root !== node) {
      const side = this.before(node, root) ? left : right
      i32[root + side] = this.removeUnder(i32[root + side], node)
      return this.balance(root)
    }
    if (i32[root + left] === 0) return i32[root + right]
    if (i32[root + right] === 0) return i32[root + left]
    let successor = i32[root + right]
    while (i32[successor + left] !== 0) successor = i32[successor + left]
    i32[successor + right] = this.removeUnder(i32[root + right], successor)
    i32[successor + left] = i32[root + left]
    return this.balance(successor)
  }

  private heightOf(node: number): number {
    return node === 0 ? 0 : this.i32[node + this.height]
  }

  private update(node: number): void {
    const { i32, left, right, height } = this
    const l = this.heightOf(i32[node + left])
    const r = this.heightOf(i32[node + right])
    i32[node + height] = (l > r ? l : r) + 1
    this.augment(node)
  }

  private balance(node: number): number {
    const { i32, left, right } = this
    const lean = this.heightOf(i32[node + left]) - this.heightOf(i32[node + right])
    assert(lean >= -2 && lean <= 2, 'a tree leans by at most two while it is rebalanced')
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
    this.update(node)
    return node
  }

  /** Rotates the child on side `up` above `node`. */
  private rotate(node: number, up: number, down: number): number {
    const { i32 } = this
    const child = i32[node + up]
    i32[node + up] = i32[child + down]
    i32[child + down] = node
    this.update(node)
    this.update(child)
    return child
  }
}
