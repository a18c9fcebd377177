import { schedulerContinue, schedulerStop } from '../sched/core/stop.ts'
import { setPriority } from '../sched/core/setpriority.ts'
import { requestKill } from '../kernel/join/cancel.ts'
import { Job, KILL_CALLED } from '../kernel/spawn/job.ts'
import { priorityOf, type TaskPriority } from '../kernel/boot/options.ts'
import type { KernelView } from '../kernel/boot/view.ts'
import { KernelFeed, type TaskChanges } from './feed.ts'
import { type Metrics, readMetrics } from './metrics.ts'
import { type KernelSnapshot, takeSnapshot } from './snapshot.ts'

/**
 * The requests that another process of the same user may send to a running kernel: take a snapshot, and stop,
 * continue, kill and reprioritise tasks. A request and a reply are one line of JSON each (node-control.ts
 * carries them).
 */
export type ControlRequest =
  | { readonly op: 'hello' }
  | { readonly op: 'snapshot' }
  | { readonly op: 'metrics' }
  /** What is new since the last such request on this connection. */
  | { readonly op: 'events' | 'changes' }
  | { readonly op: 'stop' | 'continue' | 'kill' | 'stack'; readonly task: number }
  | { readonly op: 'priority'; readonly task: number; readonly priority: TaskPriority }

export interface Hello {
  readonly pid: number
  readonly program: string
  readonly cpus: number
}

export type ControlReply =
  | { readonly ok: true; readonly hello: Hello }
  | { readonly ok: true; readonly snapshot: KernelSnapshot }
  | { readonly ok: true; readonly metrics: Metrics }
  | {
      readonly ok: true
      readonly events: { readonly now: number; readonly lost: number; readonly base64: string }
    }
  | { readonly ok: true; readonly changes: TaskChanges }
  | { readonly ok: true; readonly stack: string }
  | { readonly ok: true; readonly done: boolean }
  | { readonly ok: false; readonly error: string }

/** One connection: what it has been sent so far. */
export class ControlSession {
  private readonly view: KernelView
  private opened: KernelFeed | null = null

  constructor(view: KernelView) {
    this.view = view
  }

  /** Recording begins with the first request for it. */
  get feed(): KernelFeed {
    return (this.opened ??= new KernelFeed(this.view))
  }

  close(): void {
    this.opened?.close()
    this.opened = null
  }
}

/** Answers one request. Never throws: an error is the reply. */
export function answer(
  view: KernelView,
  hello: Hello,
  request: unknown,
  session: ControlSession = new ControlSession(view),
): ControlReply | Promise<ControlReply> {
  try {
    return perform(view, hello, request as ControlRequest, session)
  } catch (error) {
    return { ok: false, error: error instanceof Error ? error.message : String(error) }
  }
}

function perform(
  view: KernelView,
  hello: Hello,
  request: ControlRequest,
  session: ControlSession,
): ControlReply | Promise<ControlReply> {
  switch (request?.op) {
    case 'hello':
      return { ok: true, hello }
    case 'snapshot':
      return { ok: true, snapshot: takeSnapshot(view) }
    case 'metrics':
      return { ok: true, metrics: readMetrics(view.s) }
    case 'events': {
      const { now, lost, bytes } = session.feed.events()
      return { ok: true, events: { now, lost, base64: base64Of(bytes) } }
    }
    case 'changes':
      return { ok: true, changes: session.feed.tasks() }
    case 'stack':
      return stackOf(view, request.task)
    case 'stop':
      return { ok: true, done: withTask(view, request.task, task => schedulerStop(view.s, task)) }
    case 'continue':
      return { ok: true, done: withTask(view, request.task, task => schedulerContinue(view.s, task)) }
    case 'kill': {
      const job = findJob(view, request.task)
      return {
        ok: true,
        done:
          job !== 0 &&
          requestKill(view, job, KILL_CALLED, 'killed from outside, by heddle top or heddle view'),
      }
    }
    case 'priority': {
      const level = priorityOf(request.priority)
      return { ok: true, done: withTask(view, request.task, task => setPriority(view.s, task, level)) }
    }
    default:
      return { ok: false, error: `op: ${JSON.stringify((request as { op?: unknown })?.op)} is not a request` }
  }
}

async function stackOf(view: KernelView, number: number): Promise<ControlReply> {
  const job = findJob(view, number)
  const cpu = job === 0 ? 0 : Atomics.load(view.i32, job + Job.cpu)
  if (cpu === 0) return { ok: false, error: 'stack: the task has not begun, or has ended' }
  const stack = (await view.booter?.mail.stackOf(cpu - 1, number)) ?? null
  if (stack !== null) return { ok: true, stack }
  return { ok: false, error: `stack: CPU ${cpu - 1} runs code without a safepoint; try again` }
}

function base64Of(bytes: Uint8Array): string {
  let text = ''
  for (let at = 0; at < bytes.length; at += 0x2000) {
    text += String.fromCharCode(...bytes.subarray(at, at + 0x2000))
  }
  return btoa(text)
}

/** The job with this number, or 0 if it has been freed. */
function findJob(view: KernelView, number: number): number {
  const { jobs, i32 } = view
  for (let at = 0; at < jobs.capacity; at++) {
    const job = jobs.pointerAt(at)
    if (jobs.isAllocated(i32, job) && i32[job + Job.number] === number && i32[job + Job.task] !== 0)
      return job
  }
  return 0
}

function withTask(view: KernelView, number: number, act: (task: number) => boolean | void): boolean {
  const job = findJob(view, number)
  let done = false
  if (job === 0) return false
  view.withTask(job, task => {
    done = act(task) !== false
  })
  return done
}
