import { parentPort, workerData } from 'node:worker_threads'
import { Arena } from '../../../src/arena/memory/arena.ts'
import { PayloadHeap } from '../../../src/arena/memory/heap.ts'
import { Rcu } from '../../../src/arena/sync/rcu.ts'
import { acquire, release } from '../../../src/arena/sync/spinlock.ts'
import { SpscRing } from '../../../src/arena/rings/spsc.ts'
import { KernelThread } from '../../../src/arena/sync/thread.ts'
import { Board, Item, RING, stressLayout, type StressWork } from './layout.ts'

const work = workerData as StressWork
const arena = Arena.attach(work.buffer)
const thread = new KernelThread(arena, work.id)
const layout = stressLayout()
const { i32 } = arena
const { board, slab } = layout

/** Starts all threads together: most collisions are in the first microseconds. */
function line(): void {
  Atomics.add(i32, board + Board.ready, 1)
  while (Atomics.load(i32, board + Board.ready) < work.threads);
}

/** A cheap random generator for each thread. */
let state = work.id * 7919 + 1
function random(below: number): number {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0
  return Math.floor((state / 2 ** 32) * below)
}

/** Several words that must always agree, changed under one lock. Returns how often they differed. */
function lock(): number {
  let wrong = 0
  for (let turn = 0; turn < work.turns; turn++) {
    acquire(thread, board + Board.lock)
    for (let at = 1; at < 8; at++) if (i32[board + Board.plain + at] !== i32[board + Board.plain]) wrong++
    for (let at = 0; at < 8; at++) i32[board + Board.plain + at]++
    release(thread, board + Board.lock)
  }
  return wrong
}

/** Thread 0 sends 1 to n, thread 1 checks the order and adds up. */
function spsc(): number {
  const ring = new SpscRing(i32, layout.spsc.start, RING)
  let wrong = 0
  for (let value = 1; value <= work.turns; ) {
    if (work.id === 0) {
      if (ring.push(value)) value++
    } else {
      const got = ring.pop()
      if (got === 0) continue
      if (got !== value) wrong++
      value++
    }
  }
  return wrong
}

/** Threads allocate, write, verify and free from one small slab. */
function slabs(): number {
  const mine: { pointer: number; value: number }[] = []
  let wrong = 0
  for (let turn = 0; turn < work.turns; turn++) {
    if (mine.length < 40 && random(3) > 0) {
      const pointer = slab.tryAllocate(thread)
      if (pointer === 0) continue
      const value = work.id * 0x100_0000 + turn
      i32[pointer + Item.value] = value
      i32[pointer + Item.check] = ~value
      mine.push({ pointer, value })
    } else if (mine.length > 0) {
      const [{ pointer, value }] = mine.splice(random(mine.length), 1)
      if (i32[pointer + Item.value] !== value || i32[pointer + Item.check] !== ~value) wrong++
      slab.free(i32, pointer)
    }
  }
  for (const { pointer } of mine) slab.free(i32, pointer)
  return wrong
}

/** Each thread allocates payloads and sends them to the other, which verifies and frees them. */
function heap(): number {
  const payloads = new PayloadHeap(arena, layout.heap, 'heap')
  const [out, into] = work.id === 0 ? [layout.spsc, layout.back] : [layout.back, layout.spsc]
  const send = new SpscRing(i32, out.start, RING)
  const receive = new SpscRing(i32, into.start, RING)
  let sent = 0
  let received = 0
  let wrong = 0
  while (sent < work.turns || received < work.turns) {
    if (sent < work.turns && send.length < RING - 1) {
      const pointer = payloads.tryAllocate(thread, 16 + random(600))
      if (pointer !== 0) {
        i32[pointer] = sent
        i32[pointer + 1] = ~sent
        send.push(pointer)
        sent++
      }
    }
    const pointer = receive.pop()
    if (pointer !== 0) {
      if (i32[pointer] !== received || i32[pointer + 1] !== ~received) wrong++
      payloads.free(thread, pointer)
      received++
    }
  }
  return wrong
}

/**
 * Thread 0 replaces a published item again and again and frees the old one through RCU; the others read it.
 */
function rcu(): number {
  const guard = new Rcu(layout.rcu, 4)
  const callback = guard.register((_thread, node) => {
    i32[node + Item.value] = -1
    slab.free(i32, node)
  })
  guard.online(thread)
  let wrong = 0
  if (work.id === 0) {
    for (let turn = 1; turn <= work.turns; ) {
      guard.quiescent(thread)
      guard.runCallbacks(thread)
      const item = slab.tryAllocate(thread)
      if (item === 0) continue
      i32[item + Item.value] = turn
      i32[item + Item.check] = ~turn
      const old = Atomics.exchange(i32, board + Board.published, item)
      if (old !== 0) guard.callRcu(thread, old, callback)
      turn++
    }
    Atomics.store(i32, board + Board.done, 1)
    while (guard.queued(i32, 0) > 0) {
      guard.quiescent(thread)
      guard.runCallbacks(thread)
    }
    slab.free(i32, Atomics.load(i32, board + Board.published))
  } else {
    while (Atomics.load(i32, board + Board.done) === 0) {
      const item = Atomics.load(i32, board + Board.published)
      if (item !== 0) {
        for (let look = 0; look < 5; look++) {
          const value = i32[item + Item.value]
          if (value <= 0 || i32[item + Item.check] !== ~value) wrong++
        }
      }
      guard.quiescent(thread)
    }
  }
  guard.offline(i32, work.id)
  return wrong
}

const scenarios: Record<string, () => number> = { lock, spsc, slab: slabs, heap, rcu }
line()
parentPort?.postMessage(scenarios[work.scenario]())
