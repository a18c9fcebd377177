import { expect, test } from 'vitest'
import { Arena, ArenaPlan } from '../memory/arena.ts'
import { Rcu, RcuNode } from './rcu.ts'
import { KernelThread } from './thread.ts'

function setUp(cpus: number): {
  arena: Arena
  cpu: { thread: KernelThread; rcu: Rcu }[]
  node: (index: number) => number
  freed: number[]
  callback: number
  /** The word that counts periods. */
  period: number
} {
  const plan = new ArenaPlan()
  const region = Rcu.reserve(plan, cpus)
  const nodes = plan.reserve('nodes', RcuNode.words * 16).start
  const arena = Arena.create(plan)
  const freed: number[] = []
  let callback = -1
  const cpu = Array.from({ length: cpus }, (_, id) => {
    const rcu = new Rcu(region, cpus)
    callback = rcu.register((_thread, node) => freed.push(node))
    return { rcu, thread: new KernelThread(arena, id) }
  })
  cpu[0].rcu.initialize(arena.i32)
  return { arena, cpu, freed, callback, period: region.start, node: index => nodes + index * RcuNode.words }
}

test('an object is freed only after every online CPU has been quiescent', () => {
  const { cpu, node, freed, callback } = setUp(3)
  for (const { rcu, thread } of cpu) rcu.online(thread)
  const [a, b, c] = cpu
  a.rcu.callRcu(a.thread, node(0), callback)
  expect(a.rcu.runCallbacks(a.thread)).toBe(0)
  a.rcu.quiescent(a.thread)
  b.rcu.quiescent(b.thread)
  expect(a.rcu.runCallbacks(a.thread)).toBe(0)
  c.rcu.quiescent(c.thread)
  expect(a.rcu.runCallbacks(a.thread)).toBe(1)
  expect(freed).toEqual([node(0)])
})

test('idle and offline CPUs delay no callback; a stuck one delays and never breaks', () => {
  const { arena, cpu, node, callback, freed } = setUp(3)
  const [a, b, c] = cpu
  for (const { rcu, thread } of cpu) rcu.online(thread)
  b.rcu.idleEnter(b.thread)
  c.rcu.offline(arena.i32, 2)
  a.rcu.callRcu(a.thread, node(0), callback)
  a.rcu.quiescent(a.thread)
  expect(a.rcu.runCallbacks(a.thread)).toBe(1)
  b.rcu.idleExit(b.thread)
  a.rcu.callRcu(a.thread, node(1), callback)
  for (let i = 0; i < 1000; i++) {
    a.rcu.quiescent(a.thread)
    expect(a.rcu.runCallbacks(a.thread)).toBe(0)
  }
  expect(freed).toEqual([node(0)])
})

/** Other threads have opened so many periods meanwhile. */
test.each([2 ** 30, 2 ** 31, 2 ** 31 + 2 ** 30, 2 ** 32 - 4])(
  'a grace period is whole after %d numbers of periods',
  gap => {
    const { arena, cpu, node, callback, period } = setUp(3)
    const [a, b, c] = cpu
    for (const { rcu, thread } of [a, b]) rcu.online(thread)
    a.rcu.callRcu(a.thread, node(0), callback)
    for (const { rcu, thread } of [a, b]) rcu.quiescent(thread)
    expect(a.rcu.runCallbacks(a.thread)).toBe(1)
    // One that had no callback meanwhile, and one whose callback has waited since.
    c.rcu.callRcu(c.thread, node(1), callback)
    Atomics.add(arena.i32, period, gap | 0)
    b.rcu.quiescent(b.thread)
    a.rcu.callRcu(a.thread, node(2), callback)
    a.rcu.quiescent(a.thread)
    expect(a.rcu.runCallbacks(a.thread)).toBe(0)
    expect(c.rcu.runCallbacks(c.thread)).toBe(1)
    b.rcu.quiescent(b.thread)
    expect(a.rcu.runCallbacks(a.thread)).toBe(1)
  },
)

test('callbacks run in the order they were queued, as many as asked for', () => {
  const { cpu, node, freed, callback, arena } = setUp(1)
  const [a] = cpu
  a.rcu.online(a.thread)
  for (let i = 0; i < 5; i++) a.rcu.callRcu(a.thread, node(i), callback)
  expect(a.rcu.queued(arena.i32, 0)).toBe(5)
  a.rcu.quiescent(a.thread)
  expect(a.rcu.runCallbacks(a.thread, 2)).toBe(2)
  expect(a.rcu.runCallbacks(a.thread)).toBe(3)
  expect(freed).toEqual([0, 1, 2, 3, 4].map(node))
  expect(a.rcu.queued(arena.i32, 0)).toBe(0)
})

test('the callbacks of a dead CPU are adopted and run by another', () => {
  const { arena, cpu, node, freed, callback } = setUp(2)
  const [a, b] = cpu
  for (const { rcu, thread } of cpu) rcu.online(thread)
  b.rcu.callRcu(b.thread, node(0), callback)
  b.rcu.callRcu(b.thread, node(1), callback)
  a.rcu.callRcu(a.thread, node(2), callback)
  expect(() => a.rcu.adopt(a.thread, 1)).toThrow(/offline/)
  a.rcu.offline(arena.i32, 1)
  expect(a.rcu.adopt(a.thread, 1)).toBe(2)
  a.rcu.quiescent(a.thread)
  expect(a.rcu.runCallbacks(a.thread)).toBe(3)
  expect(freed).toEqual([2, 0, 1].map(node))
})

test('period numbers may wrap around 32 bits', () => {
  const { arena, cpu, node, freed, callback } = setUp(1)
  const [a] = cpu
  arena.i32[16] = 0x7fff_ffff
  a.rcu.online(a.thread)
  for (let i = 0; i < 4; i++) {
    a.rcu.callRcu(a.thread, node(i), callback)
    expect(a.rcu.runCallbacks(a.thread)).toBe(0)
    a.rcu.quiescent(a.thread)
    expect(a.rcu.runCallbacks(a.thread)).toBe(1)
  }
  expect(freed.length).toBe(4)
})
