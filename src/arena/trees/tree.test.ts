import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { Arena, ArenaPlan } from '../memory/arena.ts'
import { type Layout, record, word } from '../memory/record.ts'
import { IntrusiveTree } from './tree.ts'

const Node: Layout<'left' | 'right' | 'height' | 'key' | 'sum'> = record('node', {
  left: word,
  right: word,
  height: word,
  key: word,
  /** The keys under this node, its own included. */
  sum: word,
})

class SumTree extends IntrusiveTree {
  protected override before(a: number, b: number): boolean {
    const { i32 } = this
    return i32[a + Node.key] === i32[b + Node.key] ? a < b : i32[a + Node.key] < i32[b + Node.key]
  }

  protected override augment(node: number): void {
    const { i32 } = this
    const sumOf = (child: number): number => (child === 0 ? 0 : i32[child + Node.sum])
    i32[node + Node.sum] = i32[node + Node.key] + sumOf(i32[node + this.left]) + sumOf(i32[node + this.right])
  }

  /** The keys in order; asserts what is true of every node on the way. */
  keys(node: number): number[] {
    if (node === 0) return []
    const { i32 } = this
    const [l, r] = [i32[node + this.left], i32[node + this.right]]
    const heightOf = (child: number): number => (child === 0 ? 0 : i32[child + this.height])
    expect(i32[node + this.height]).toBe(1 + Math.max(heightOf(l), heightOf(r)))
    expect(Math.abs(heightOf(l) - heightOf(r))).toBeLessThan(2)
    const keys = [...this.keys(l), i32[node + Node.key], ...this.keys(r)]
    expect(i32[node + Node.sum]).toBe(keys.reduce((sum, key) => sum + key, 0))
    return keys
  }
}

const NODES = 40

function makeTree(): { i32: Int32Array; root: number; node: (index: number) => number; tree: SumTree } {
  const plan = new ArenaPlan()
  const root = plan.reserve('root', 1).start
  const { start } = plan.reserve('nodes', NODES * Node.words)
  const { i32 } = Arena.create(plan)
  const node = (index: number): number => start + index * Node.words
  return { i32, root, node, tree: new SumTree(i32, Node) }
}

test('inserts and removals keep a tree ordered and balanced, and every summary that of its subtree', () => {
  const steps = fc.array(fc.tuple(fc.nat(NODES - 1), fc.integer({ min: -50, max: 50 })), { maxLength: 200 })
  fc.assert(
    fc.property(steps, sequence => {
      const { i32, root, node, tree } = makeTree()
      const model = new Map<number, number>()
      for (const [index, key] of sequence) {
        if (model.delete(index)) {
          tree.remove(root, node(index))
        } else {
          i32[node(index) + Node.key] = key
          tree.insert(root, node(index))
          model.set(index, key)
        }
        expect(tree.isQueued(node(index))).toBe(model.has(index))
        const keys = tree.keys(i32[root])
        expect(keys).toEqual([...model.values()].sort((a, b) => a - b))
        const first = tree.first(root)
        expect(first === 0 ? undefined : i32[first + Node.key]).toBe(keys[0])
      }
    }),
    { numRuns: 60 },
  )
})

test('a node that is on a tree is not put on it again, and one that is on none is not taken off', () => {
  const { root, node, tree } = makeTree()
  tree.insert(root, node(0))
  expect(() => tree.insert(root, node(0))).toThrow(/double insert/)
  expect(() => tree.remove(root, node(1))).toThrow(/on no tree/)
  expect(() => tree.remove(root + 1, node(0))).toThrow(/foreign removal/)
})
