import { assert } from '../../arena/assert.ts'
import { throwIfInside } from '../../arena/sync/section.ts'
import { acquire, release } from '../../arena/sync/spinlock.ts'
import { CpuRecord } from '../../machine/core/cpurecord.ts'
import { type Cpu, type CpuRequest, HALT, MICROTASKS, STEP, TURN } from '../../machine/core/machine.ts'
import { takeArrivals } from './arrivals.ts'
import { Entity } from './entity.ts'
import { afterSwitch, beforeSwitch, cpuForgetsPolicy, lookForPolicy, workForIdle } from '../ext/extcpu.ts'
import { policyImporter } from '../ext/extimport.ts'
import { ExtRecord } from '../ext/extlayout.ts'
import { reapTask } from './exit.ts'
import { adoptFromGone, cpuGone, cpuOffline, cpuOnline } from '../balance/hotplug.ts'
import { FAIR_MAJOR_PRIORITY } from './priority.ts'
import { RunQueue } from './runqueue.ts'
import type { Scheduler } from './scheduler.ts'
import { MOVES, sendAway } from '../balance/move.ts'
import { pullTask, pushTask, stealTask } from '../balance/steal.ts'
import {
  SWITCH_EXITS,
  SWITCH_PREEMPTED,
  SWITCH_SLEEPS,
  schedule,
  SWITCH_YIELDS,
  yieldToEqual,
} from './switch.ts'
import { expireTimers } from './timer.ts'
import { TurnClock } from './turnclock.ts'
import { TURN_ESTIMATED, TURN_MEASURED } from './turnlength.ts'

/**
 * The loop of a CPU: switch, run a task until it gives up the CPU, switch again. The scheduler does not know
 * how a task runs: `resume` runs it, and returns why it stopped (SWITCH_PREEMPTED, SWITCH_SLEEPS,
 * SWITCH_YIELDS or SWITCH_EXITS, see switch.ts; CONTINUES or AWAITS below; MOVES, see move.ts). On
 * SWITCH_EXITS the task is a ZOMBIE already (exit.ts).
 *
 * Between the sleep of a task and the end of its switch the loop wakes no task, and runs nothing that may:
 * callbacks of the event loop, the end of a rescue, the packing of tasks. A waker waits for a switch, and
 * two CPUs could wait for each other:
 *
 *   CPU 0: task 0 sleeps, not yet switched     CPU 1: task 1 sleeps, not yet switched
 *   --------------------------------------     --------------------------------------
 *   a callback wakes task 1: waits until       a callback wakes task 0: waits until
 *   CPU 1 has switched                         CPU 0 has switched
 *
 * So an interrupt that comes with a sleep only expires timers, which make no such cycle (timer.ts); the
 * switch follows, and then the rest.
 */
export type Resume = (task: number) => number

/** On a machine that runs step by step: the task keeps the CPU, but other CPUs take their turns. */
export const CONTINUES = 4

/**
 * The task awaits a promise that may settle as soon as microtasks have run: it keeps the CPU until then.
 */
export const AWAITS = 5

/** Every so many turns a CPU without interrupts checks whether it must stop, and whether callbacks wait. */
const LOOK_UP_EVERY = 256

/** How many callbacks it runs then: a turn can queue a few, and they must not pile up. */
const CALLBACKS = 8 * LOOK_UP_EVERY

/**
 * With more callbacks than this left, it interrupts the CPUs that they wait for: a task that is alone on its
 * CPU might not switch for minutes.
 */
const CALLBACKS_LEFT = 128

/** How soon an idle CPU checks again for callbacks that wait for other CPUs. */
const CALLBACK_WAIT_MS = 1

export function* cpuLoop(cpu: Cpu, s: Scheduler, resume: Resume): Generator<CpuRequest, void, void> {
  const { i32, queue, rcu, thread } = s
  const needResched = cpu.record + CpuRecord.needResched
  const idle = i32[queue + RunQueue.idle]
  const { stepwise } = cpu
  const balances = s.cpus > 1
  const turnClock = new TurnClock(s)
  let online = true
  let why = SWITCH_PREEMPTED
  let turns = LOOK_UP_EVERY
  let postponed = false
  /** A task has ended since the CPU last had none. */
  let ended = false
  const { arrivals, ext } = s
  const generation = ext.record + ExtRecord.generation
  ext.fetch ??= policyImporter(cpu)
  // Started, and held until the thread that holds it releases it (extload.ts).
  while (Atomics.load(i32, ext.record + ExtRecord.hold) !== 0 && !cpu.stopRequested) {
    if (Atomics.load(i32, generation) !== ext.generation) lookForPolicy(s)
    yield cpu.mailPending ? TURN : HALT
  }
  cpuOnline(s)
  let current = idle
  for (;;) {
    // A plain read: a stale 0 means that the next turn sees it. The tick and a preempting thread store it
    // atomically.
    if (i32[needResched] !== 0 || current === idle || --turns === 0 || postponed) {
      turns = LOOK_UP_EVERY
      interrupt(cpu, s)
      if (online && why !== SWITCH_EXITS && cpu.stopRequested) {
        online = false
        cpuOffline(s, why)
        current = idle
        why = SWITCH_PREEMPTED
        packAsked(s)
      }
      // This CPU holds no RCU reference here. Without this, a task that is alone on its CPU would delay all
      // callbacks for as long as it runs.
      rcu.quiescent(thread)
      // A task that sleeps leaves its CPU first: see Resume.
      postponed = why === SWITCH_SLEEPS
      if (!postponed) {
        if (s.finishRescue !== null) finishRescue(s)
        if (i32[queue + RunQueue.moveAsked] !== 0 || s.clock >= s.moveAt) packAsked(s)
        runCallbacks(s)
        if (cpu.mailPending || (s.clock >= s.turnAt && current !== idle)) {
          yield TURN
          if (s.turnAt !== Infinity) s.turnAt = s.readClock() + s.slice
        }
        if (i32[generation] !== ext.generation) lookForPolicy(s)
      }
    } else if (!turnClock.asked) {
      turnClock.atSwitch(why, i32[current + Entity.priority])
    }
    turnClock.asked = false
    if (arrivals.has(s.cpu)) takeArrivals(s, s.cpu)
    const prev = current
    if (ext.policy !== null) beforeSwitch(s, why)
    current = schedule(s, why)
    if (ext.policy !== null) afterSwitch(s, prev, current, why)
    if (why === SWITCH_EXITS) {
      reapTask(s, i32[prev + Entity.task])
      ended = true
    }
    if (balances && why === SWITCH_PREEMPTED && prev !== current) outranked(s, prev, current)
    why = SWITCH_PREEMPTED
    if (postponed) continue
    if (balances && online && s.othersOffer() && pull(s, current, idle)) continue
    if (balances && online && i32[current + Entity.priority] >> 2 > FAIR_MAJOR_PRIORITY && takeOthers(s))
      continue
    if (current === idle) {
      const isEmpty = Atomics.load(i32, queue + RunQueue.bound) === 0
      if (isEmpty && ended) {
        ended = false
        cpu.turnsFirst = !stepwise
      }
      if (!online && isEmpty) {
        if (!cpu.turnsFirst) break
        cpu.turnsFirst = false
        yield TURN
        continue
      }
      adoptFromGone(s)
      runCallbacks(s)
      // A policy that this CPU has just left may have put tasks on this queue.
      if ((ext.policy !== null && workForIdle(s)) || i32[needResched] !== 0) continue
      cpu.haltUntil =
        rcu.queued(i32, s.cpu) === 0 ? s.nextTimer : Math.min(s.nextTimer, s.clock + CALLBACK_WAIT_MS)
      rcu.idleEnter(thread)
      yield HALT
      rcu.idleExit(thread)
      continue
    }
    assert(i32[current + Entity.onCpu] === 1, 'the task that runs is on this CPU')
    const task = i32[current + Entity.task]
    // Other CPUs take their turns before it runs, never between its sleep and its switch: a waker would wait
    // there.
    if (stepwise) yield STEP
    why = resume(task)
    if (stepwise) {
      while (why === CONTINUES) {
        yield STEP
        why = resume(task)
      }
    } else if (why === SWITCH_YIELDS) {
      why = yieldAround(s, resume, turnClock, needResched)
      current = i32[queue + RunQueue.current]
    }
    while (why === AWAITS) {
      yield MICROTASKS
      why = resume(i32[current + Entity.task])
    }
    if (why === MOVES) {
      sendAway(s, s.moveTarget)
      current = idle
      why = SWITCH_PREEMPTED
    }
    assert(why >= SWITCH_PREEMPTED && why <= SWITCH_EXITS, 'resume says why a task stopped')
  }
  cpuForgetsPolicy(s)
  cpuGone(s)
}

/**
 * Runs tasks of one list that only yield to each other, until something else happens. The current task
 * has yielded; on return, some task has stopped for the returned reason, and is the current one. cpuLoop does
 * the same: this is a plain function, which engines compile better than a generator.
 */
function yieldAround(s: Scheduler, resume: Resume, turnClock: TurnClock, needResched: number): number {
  const { i32, queue, thread } = s
  const alone = s.cpus === 1
  let current = i32[queue + RunQueue.current]
  for (let turns = LOOK_UP_EVERY; turns > 0; turns--) {
    if (i32[needResched] !== 0 || (!alone && s.othersOffer())) break
    if (turnClock.left > 0 && !s.measuresTurn) {
      turnClock.left--
      s.turn = TURN_ESTIMATED
    } else {
      turnClock.atSwitch(SWITCH_YIELDS, i32[current + Entity.priority])
    }
    acquire(thread, queue + RunQueue.lock)
    const next = yieldToEqual(s, current)
    if (next === 0) {
      release(thread, queue + RunQueue.lock)
      turnClock.asked = true
      break
    }
    current = next
    const why = resume(i32[next + Entity.task])
    if (why !== SWITCH_YIELDS) return why
  }
  return SWITCH_YIELDS
}

function finishRescue(s: Scheduler): void {
  const { finishRescue: finish } = s
  s.finishRescue = null
  finish?.()
}

/**
 * The interrupt: clears `needResched` first, so that a later request is seen; then reads the clock and
 * expires the timers.
 */
function interrupt(cpu: Cpu, s: Scheduler): void {
  // A callback of the event loop, or a promise, may have run before this.
  if (s.thread.sections !== 0) throwIfInside(s.thread, `a callback on CPU ${s.cpu}`)
  if (cpu.needResched) cpu.clearNeedResched()
  Atomics.add(s.i32, s.queue + RunQueue.heartbeat, 1)
  s.readClock()
  s.turn = TURN_MEASURED
  s.measuresTurn = false
  s.ticks = true
  expireTimers(s)
}

/** Packs the tasks of this CPU that should move and do not run. The running task moves when it stops. */
function packAsked(s: Scheduler): void {
  Atomics.store(s.i32, s.queue + RunQueue.moveAsked, 0)
  s.moveAt = Infinity
  s.packAsked?.()
}

function runCallbacks(s: Scheduler): void {
  const { rcu, thread, i32 } = s
  rcu.runCallbacks(thread, CALLBACKS)
  if (rcu.queued(i32, s.cpu) <= CALLBACKS_LEFT) return
  for (let cpu = 0; cpu < s.cpus; cpu++) if (cpu !== s.cpu && rcu.waitsFor(thread, cpu)) s.resched(cpu)
}

/** `current` displaced `prev`: another CPU may run something less important than `prev`. */
function outranked(s: Scheduler, prev: number, current: number): void {
  const { i32 } = s
  if (i32[prev + Entity.priority] >> 2 <= i32[current + Entity.priority] >> 2) return
  if (prev !== i32[s.queue + RunQueue.idle]) pushTask(s, prev)
}

/** Takes the arrivals of another CPU, which may be stuck: nothing that runs here outranks them. */
function takeOthers(s: Scheduler): boolean {
  const cpu = s.arrivals.elsewhere(s.cpu)
  if (cpu < 0) return false
  takeArrivals(s, cpu)
  return true
}

function pull(s: Scheduler, current: number, idle: number): boolean {
  return current === idle ? stealTask(s) : pullTask(s, s.i32[current + Entity.priority])
}
