import { pause } from '../arena/sync/pause.ts'
import { acquire, release } from '../arena/sync/spinlock.ts'
import { type Cpu, type CpuRequest, HALT } from '../machine/core/machine.ts'
import {
  Board,
  CHURN,
  CHURNS,
  COUNT,
  COUNTS,
  DIE,
  heapOf,
  HOG,
  HOG_MS,
  IDLE,
  PASS,
  PAYLOADS,
  PING,
  PINGS,
  ringOf,
  type SelftestLayout,
  selftestLayout,
  SLICE_MS,
  STREAM,
  VALUES,
} from './selftest-layout.ts'

/** The program of the CPUs in the self-test: one phase after the other, over shared memory. */
export default function* program(cpu: Cpu): Generator<CpuRequest, void, void> {
  const layout = selftestLayout()
  const { i32 } = cpu
  const { board } = layout
  let done: number = IDLE
  while (!cpu.stopRequested) {
    const phase = Atomics.load(i32, board + Board.phase)
    if (phase === done || phase === IDLE) {
      done = phase
      yield HALT
      continue
    }
    if (phase === PING) yield* ping(cpu, board)
    else runPhase(cpu, layout, phase)
    done = phase
    Atomics.add(i32, board + Board.finished, 1)
    Atomics.notify(i32, board + Board.finished)
  }
}

function runPhase(cpu: Cpu, layout: SelftestLayout, phase: number): void {
  if (phase === COUNT) count(cpu, layout.board)
  else if (phase === STREAM) stream(cpu, layout)
  else if (phase === CHURN) churn(cpu, layout)
  else if (phase === PASS) passPayloads(cpu, layout)
  else if (phase === HOG) hog(cpu, layout.board)
  else if (phase === DIE && cpu.id === 1) dieHoldingLock(cpu, layout.board)
}

/** Both CPUs add to one plain word under one lock. */
function count(cpu: Cpu, board: number): void {
  for (let i = 0; i < COUNTS; i++) {
    acquire(cpu.thread, board + Board.lock)
    cpu.i32[board + Board.counter]++
    release(cpu.thread, board + Board.lock)
  }
}

/** CPU 0 sends numbers through a ring, CPU 1 adds them up. */
function stream(cpu: Cpu, layout: SelftestLayout): void {
  const ring = ringOf(cpu.arena, layout)
  let sum = 0
  for (let value = 1; value <= VALUES; ) {
    if (cpu.id === 0) {
      if (!ring.push(value)) {
        backOff(cpu, layout.board)
        continue
      }
      value++
    } else {
      const got = ring.pop()
      if (got === 0) {
        backOff(cpu, layout.board)
        continue
      }
      sum = (sum + Math.imul(got, value)) | 0
      value++
    }
    spins = 0
  }
  cpu.i32[layout.board + Board.checksum + cpu.id] = sum
}

/** Both CPUs allocate and free records from one slab, and write their tag into each. */
function churn(cpu: Cpu, layout: SelftestLayout): void {
  const { i32, thread } = cpu
  const { slab } = layout
  const kept: number[] = []
  let wrong = 0
  for (let i = 0; i < CHURNS; i++) {
    const pointer = slab.allocate(thread)
    i32[pointer] = thread.ownerTag * 0x100_0000 + i
    kept.push(pointer, i)
    if (kept.length < 128) continue
    const at = (i % 64) * 2
    if (i32[kept[at]] !== thread.ownerTag * 0x100_0000 + kept[at + 1]) wrong++
    slab.free(i32, kept[at])
    kept.splice(at, 2)
  }
  for (let at = 0; at < kept.length; at += 2) slab.free(i32, kept[at])
  i32[layout.board + Board.checksum + cpu.id] = wrong
}

/** CPU 0 allocates payloads of all sizes, CPU 1 reads and frees them. */
function passPayloads(cpu: Cpu, layout: SelftestLayout): void {
  const { i32, thread } = cpu
  const ring = ringOf(cpu.arena, layout)
  const heap = heapOf(cpu.arena, layout)
  let wrong = 0
  for (let i = 0; i < PAYLOADS; ) {
    if (cpu.id === 0) {
      const pointer = heap.tryAllocate(thread, 8 + (Math.imul(i, 2654435761) >>> 23))
      if (pointer === 0) {
        backOff(cpu, layout.board)
        continue
      }
      i32[pointer] = i
      i32[pointer + 1] = ~i
      while (!ring.push(pointer)) backOff(cpu, layout.board)
      i++
    } else {
      const pointer = ring.pop()
      if (pointer === 0) {
        backOff(cpu, layout.board)
        continue
      }
      if (i32[pointer] !== i || i32[pointer + 1] !== ~i) wrong++
      heap.free(thread, pointer)
      i++
    }
    spins = 0
  }
  i32[layout.board + Board.checksum + cpu.id] = wrong
}

const SPINS = 1000
/** Failed attempts in a row. */
let spins = 0

/** Waits for the other CPU, because the ring is full or empty. That CPU may have no core to run on. */
function backOff(cpu: Cpu, board: number): void {
  if (++spins < SPINS) {
    pause()
    return
  }
  spins = 0
  Atomics.wait(cpu.i32, board + Board.unused, 0, 0.1)
}

/** The CPUs take turns: each halts until the other kicks it. */
function* ping(cpu: Cpu, board: number): Generator<CpuRequest, void, void> {
  const { i32 } = cpu
  for (let i = 0; i < PINGS; i++) {
    while (Atomics.load(i32, board + Board.turn) !== i * 2 + cpu.id) yield HALT
    Atomics.store(i32, board + Board.turn, i * 2 + cpu.id + 1)
    cpu.kick(1 - cpu.id)
  }
}

/** Computes, reads `needResched` as compiled code does, and counts how often its slice ended. */
function hog(cpu: Cpu, board: number): void {
  const end = cpu.now() + HOG_MS
  let slices = 0
  cpu.armTick(cpu.now() + SLICE_MS)
  while (cpu.now() < end) {
    if (!cpu.needResched) continue
    cpu.clearNeedResched()
    slices++
    cpu.armTick(cpu.now() + SLICE_MS)
  }
  cpu.disarmTick()
  cpu.i32[board + Board.seen + cpu.id] = slices
}

function dieHoldingLock(cpu: Cpu, board: number): never {
  acquire(cpu.thread, board + Board.lock)
  throw new Error('CPU 1 throws while it holds a lock, as part of the self-test')
}
