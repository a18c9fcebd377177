import {
  CONTINUE,
  CPU_DOWN,
  CPU_UP,
  EXIT,
  IDLE,
  MIGRATE,
  MOVE,
  NAME,
  NAME_REST,
  POLICY,
  PRIORITY,
  SPAWN,
  STOP,
  SWITCH,
  threadActor,
  WAKEUP,
} from '../../arena/rings/events.ts'
import { Entity } from './entity.ts'
import { RunQueue } from './runqueue.ts'
import type { Scheduler } from './scheduler.ts'
import { TaskRecord } from './taskrecord.ts'

/**
 * The scheduler's events. Each call stands behind `if (i32[s.recording] !== 0)`, and is a function of its
 * own, so that the calling code stays small.
 */

/** The actor on this thread: a task's slot, IDLE, or a thread that is no CPU. */
export function actorOf(s: Scheduler): number {
  if (s.queue === 0) return threadActor(s.thread.id)
  return slotOf(s, s.i32[s.queue + RunQueue.current])
}

function slotOf(s: Scheduler, se: number): number {
  const { i32, queue } = s
  if (queue !== 0 && se === i32[queue + RunQueue.idle]) return IDLE
  return i32[i32[se + Entity.task] + TaskRecord.slot]
}

/**
 * `time`: a yield between equals uses the last reading of the clock; any other switch reads it, so that it is
 * never recorded before the wakeup.
 */
export function recordSwitch(s: Scheduler, prev: number, next: number, why: number, time: number): void {
  const { i32 } = s
  s.events?.write(
    SWITCH,
    time,
    slotOf(s, next),
    slotOf(s, prev),
    why,
    i32[next + Entity.priority],
    i32[prev + Entity.priority],
  )
}

/** The entity was put on a CPU's queue by a wakeup. */
export function recordWakeup(s: Scheduler, queue: number, se: number): void {
  const { i32 } = s
  const task = i32[se + Entity.task]
  s.events?.write(
    WAKEUP,
    s.clock,
    i32[task + TaskRecord.slot],
    i32[queue + RunQueue.cpu],
    actorOf(s),
    i32[se + Entity.priority],
    i32[task + TaskRecord.wakeReason],
  )
}

export function recordMigrate(s: Scheduler, se: number, from: number, to: number): void {
  s.events?.write(MIGRATE, s.clock, s.i32[s.i32[se + Entity.task] + TaskRecord.slot], from, to, 0, 0)
}

/** The started task was packed here, with a state of so many bytes. */
export function recordMove(s: Scheduler, task: number, bytes: number): void {
  s.events?.write(MOVE, s.readClock(), s.i32[task + TaskRecord.slot], s.cpu, bytes, 0, 0)
}

/** A new task, and its name. */
export function recordSpawn(s: Scheduler, task: number, se: number): void {
  const { i32, events, clock } = s
  if (events === null) return
  const slot = i32[task + TaskRecord.slot]
  const mask = se + Entity.affinityMask
  events.write(SPAWN, clock, slot, actorOf(s), i32[se + Entity.priority], i32[mask], i32[mask + 1])
  const name = i32[task + TaskRecord.name]
  if (name === 0) return
  events.write(NAME, clock, slot, i32[name], i32[name + 1], i32[name + 2], i32[name + 3])
  if (i32[name + 4] === 0) return
  events.write(NAME_REST, clock, slot, i32[name + 4], i32[name + 5], i32[name + 6], i32[name + 7])
}

export function recordExit(s: Scheduler, task: number, exitCode: number): void {
  s.events?.write(EXIT, s.clock, s.i32[task + TaskRecord.slot], exitCode, 0, 0, 0)
}

export function recordStop(s: Scheduler, task: number, stops: boolean): void {
  s.events?.write(stops ? STOP : CONTINUE, s.readClock(), s.i32[task + TaskRecord.slot], actorOf(s), 0, 0, 0)
}

export function recordPriority(s: Scheduler, se: number, before: number, after: number): void {
  const { i32 } = s
  const inherited = after < i32[se + Entity.basePriority] || before < i32[se + Entity.basePriority] ? 1 : 0
  s.events?.write(
    PRIORITY,
    s.clock,
    i32[i32[se + Entity.task] + TaskRecord.slot],
    before,
    after,
    inherited,
    0,
  )
}

export function recordCpu(s: Scheduler, cpu: number, up: boolean, why: number): void {
  s.events?.write(up ? CPU_UP : CPU_DOWN, s.readClock(), IDLE, cpu, why, 0, 0)
}

/** A policy was loaded, unloaded or ejected, and the reason. */
export function recordPolicy(s: Scheduler, what: number, reason: number): void {
  s.events?.write(POLICY, s.now(), actorOf(s), what, reason, 0, 0)
}
