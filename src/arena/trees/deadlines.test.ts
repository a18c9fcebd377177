import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Arena, ArenaPlan } from '../memory/arena.ts'
import { DeadlineNode, DeadlineQueue, Deadlines } from './deadlines.ts'

function setUp(timers: number): {
  deadlines: Deadlines
  node: (index: number) => number
  arena: Arena
  other: Deadlines
} {
  const plan = new ArenaPlan()
  const queue = plan.reserve('queue', DeadlineQueue.words).start
  const other = plan.reserve('other queue', DeadlineQueue.words).start
  const nodes = plan.reserve('nodes', DeadlineNode.words * timers).start
  const arena = Arena.create(plan)
  return {
    arena,
    deadlines: new Deadlines(arena, queue),
    other: new Deadlines(arena, other),
    node: index => nodes + index * DeadlineNode.words,
  }
}

/** The height of the tree under a node, asserting that it is an AVL tree. */
function heightUnder(arena: Arena, node: number): number {
  if (node === 0) return 0
  const left = heightUnder(arena, arena.i32[node + DeadlineNode.left])
  const right = heightUnder(arena, arena.i32[node + DeadlineNode.right])
  expect(Math.abs(left - right)).toBeLessThanOrEqual(1)
  expect(arena.i32[node + DeadlineNode.height]).toBe(1 + Math.max(left, right))
  return 1 + Math.max(left, right)
}

test('a deadline queue behaves as a sorted array does, over 100,000 random operations', () => {
  const timers = 64
  let operations = 0
  fc.assert(
    fc.property(
      fc.array(
        fc.tuple(fc.nat(timers - 1), fc.nat(9), fc.constantFrom('insert', 'insert', 'remove', 'expire')),
        {
          minLength: 1000,
          maxLength: 1100,
        },
      ),
      steps => {
        const { deadlines, node } = setUp(timers)
        const model: { timer: number; at: number }[] = []
        for (const [timer, at, kind] of steps) {
          operations++
          const where = model.findIndex(entry => entry.timer === node(timer))
          if (kind === 'insert') {
            if (where >= 0) expect(() => deadlines.insert(node(timer), at)).toThrow(/already/)
            else {
              deadlines.insert(node(timer), at)
              const behind = model.findIndex(entry => entry.at > at)
              model.splice(behind < 0 ? model.length : behind, 0, { timer: node(timer), at })
            }
          } else if (kind === 'remove') {
            if (where < 0) expect(() => deadlines.remove(node(timer))).toThrow(/on no deadline queue/)
            else {
              deadlines.remove(node(timer))
              model.splice(where, 1)
            }
          } else {
            const due = model.length > 0 && model[0].at <= at
            expect(deadlines.expire(at)).toBe(due ? model.shift()?.timer : 0)
          }
          expect(deadlines.count).toBe(model.length)
          expect(deadlines.next()).toBe(model[0]?.at ?? Infinity)
          expect(deadlines.first()).toBe(model[0]?.timer ?? 0)
        }
      },
    ),
    { numRuns: 100 },
  )
  expect(operations).toBeGreaterThanOrEqual(100_000)
})

test('timers in ascending, descending and equal order stay balanced, and expire in order', () => {
  const timers = 4096
  for (const at of [(i: number) => i, (i: number) => -i, () => 7]) {
    const { deadlines, node, arena } = setUp(timers)
    for (let i = 0; i < timers; i++) deadlines.insert(node(i), at(i))
    const root = arena.i32[16 + DeadlineQueue.root]
    expect(heightUnder(arena, root)).toBeLessThanOrEqual(1.45 * Math.log2(timers + 2))
    let last = -Infinity
    for (let i = 0; i < timers; i++) {
      const timer = deadlines.expire(Infinity)
      expect(deadlines.deadlineOf(timer)).toBeGreaterThanOrEqual(last)
      last = deadlines.deadlineOf(timer)
      expect(deadlines.isQueued(timer)).toBe(false)
    }
    expect(deadlines.expire(Infinity)).toBe(0)
  }
})

test('a timer of another queue, a NaN and an odd pointer are refused', () => {
  const { deadlines, other, node } = setUp(3)
  deadlines.insert(node(0), 1)
  other.insert(node(1), 2)
  expect(() => deadlines.remove(node(1))).toThrow(/foreign removal/)
  expect(() => deadlines.insert(node(2), Number.NaN)).toThrow(/number/)
  expect(() => deadlines.insert(node(2) + 1, 1)).toThrow(/even word/)
})
