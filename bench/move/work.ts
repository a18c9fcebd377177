/**
 * Movable functions in the form that the compiler gives them, so that a bench says how many frames there are.
 */
import { itself } from '../../src/coroutine/core/coroutine.ts'
import { frames, look, type Reenter, save, take } from '../../src/coroutine/core/frames.ts'
import { registerMovable } from '../../src/coroutine/core/movable.ts'
import { here } from '../../src/kernel/cpu/here.ts'
import { setAffinity } from '../../src/sched/balance/affinity.ts'
import { askToMove } from '../../src/sched/balance/move.ts'

const MODULE = 'bench/move/work.ts'

function movable<F extends (...args: any[]) => unknown>(fn: F, reenter: Reenter): F {
  Object.defineProperty(fn, itself, { value: fn })
  registerMovable(MODULE, import.meta.url, [{ key: fn.name, hash: '1', reenter, value: () => fn }])
  return fn
}

function permission(): number {
  const { ok } = frames
  frames.ok = 0
  return ok
}

/** The running task asks to be moved to the other of CPUs 0 and 1, at its next safepoint. */
function leave(): void {
  const on = here.cpu!
  const { task } = on.currentRun()
  setAffinity(on.s, task, 1 << (1 - on.cpu.id), 0)
  askToMove(on.s, task)
}

/** The innermost of three frames: hops so many times, and holds `held`. */
function hopFrom(ok: unknown, place: number, values: unknown[]): unknown {
  if (place === 1) take()
  for (;;) {
    const left = values[0] as number
    if (left === 0) return values[1]
    leave()
    values = [left - 1, values[1]]
    if (look(ok)) return save(undefined, 1, values, hopAgain)
  }
}
const hopAgain: Reenter = (place, values) => hopFrom(1, place, values)
const hop = movable(function hop(times: number, held: unknown) {
  return hopFrom(permission(), 0, [times, held])
}, hopAgain)

/** The middle one holds four numbers. */
const middleAgain: Reenter = (_place, values) => {
  const held = take()
  return (values as number[]).reduce((sum, one) => sum + one, 0) + (held === null ? 0 : 1)
}
const middle = movable(function middle(times: number, held: unknown) {
  permission()
  frames.ok = 1
  const value = hop(times, held)
  frames.ok = 0
  if (frames.u !== 0) return save(undefined, 1, [1.5, 2.5, 3.5, 4.5], middleAgain)
  return value
}, middleAgain)

/** The outermost one five. It returns milliseconds for one hop. */
const hopsAgain: Reenter = (_place, values) => {
  take()
  const [start, times] = values as number[]
  return (here.cpu!.s.now() - start) / times
}
export const hops: (times: number, bytes: number, isShared: boolean) => number = movable(function hops(
  times: number,
  bytes: number,
  isShared: boolean,
) {
  permission()
  const buffer = isShared ? new SharedArrayBuffer(bytes) : new ArrayBuffer(bytes)
  const held = bytes === 0 ? null : new Uint8Array(buffer)
  const start = here.cpu!.s.now()
  frames.ok = 1
  middle(times, held)
  frames.ok = 0
  return save(undefined, 1, [start, times, 0.25, 0.5, 0.75], hopsAgain)
}, hopsAgain) as never

function spinFrom(ok: unknown, i: number, rounds: number, inner: number, sum: number): unknown {
  while (i < rounds) {
    for (let j = 0; j < inner; j++) sum = (Math.imul(sum, 31) + i + j) | 0
    i++
    if (look(ok)) return save(undefined, 0, [i, rounds, inner, sum], spinAgain)
  }
  return sum
}
const spinAgain: Reenter = (_place, values) => {
  take()
  const [i, rounds, inner, sum] = values as number[]
  return spinFrom(1, i, rounds, inner, sum)
}
/** `rounds` safepoints, with so many steps of computing in between. */
export const spin: (rounds: number, inner: number) => number = movable(function spin(
  rounds: number,
  inner: number,
) {
  return spinFrom(permission(), 0, rounds, inner, 0)
}, spinAgain) as never

/** Nanoseconds of thread CPU time so far. */
function threadTime(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) * 1000
}

function longFrom(ok: unknown, i: number, rounds: number, state: Uint8Array, begun: number): unknown {
  while (i < rounds) {
    let sum = i
    for (let j = 0; j < 20_000; j++) sum = (Math.imul(sum, 31) + j) | 0
    state[i % state.length] ^= sum
    i++
    if (look(ok)) return save(undefined, 0, [i, rounds, state, begun], longAgain)
  }
  return threadTime() - begun
}
const longAgain: Reenter = (_place, values) => {
  take()
  const [i, rounds, state, begun] = values as [number, number, Uint8Array, number]
  return longFrom(1, i, rounds, state, begun)
}
/** A long computation with so many bytes of state. Returns its nanoseconds of thread CPU time. */
export const long: (rounds: number, bytes: number) => number = movable(function long(
  rounds: number,
  bytes: number,
) {
  return longFrom(permission(), 0, rounds, new Uint8Array(bytes), threadTime())
}, longAgain) as never

export function nothing(): number {
  return 1
}
