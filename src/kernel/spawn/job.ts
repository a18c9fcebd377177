import { float64, type Layout, record, word, words } from '../../arena/memory/record.ts'

/**
 * The job: what a task is to run, and what became of it. A slab record beside the kernel task (src/sched),
 * which it outlives: the task goes when it has ended, the job when whoever holds its handle has taken the
 * result.
 *
 * `outcome` is the join word: it goes from OUTCOME_PENDING to one of the others once, and others may wait for
 * that at a futex.
 *
 *   [0] OUTCOME_PENDING   queued, running or asleep           the CPU that runs it -> [1] [2] [3]; recovery -> [4] [5]
 *   [1] OUTCOME_RETURNED  `result` is the value's payload, or 0 for undefined
 *   [2] OUTCOME_THREW     `result` is the error's payload
 *   [3] OUTCOME_KILLED    the kill was thrown into it, and it ended by that; `result` is 0, `reason` says what was thrown
 *   [4] OUTCOME_EVICTED   it did not end within the grace period of a kill, and its CPU was taken from it
 *   [5] OUTCOME_LOST      its CPU died under it; `result` is 0 or the payload of how
 *
 * `control` is a set of bits. Two of them settle who sees to a job that nobody will join, by one atomic `or`
 * each:
 *
 *   the task ends                              whoever holds the handle gives it up
 *   -------------                              ------------------------------------
 *   (A) or(control, JOB_ENDED)                     (B) or(control, JOB_DISOWNED)
 *
 * The second of the two finds the other's bit, and hands the job to the booting thread, which reports a
 * failure and frees the record. By BY_ENDER or BY_OWNER, set along with its own bit, it says that it will: so
 * that it is known whose it was to do if that one dies. A job that the booting thread spawned (JOB_BOOTER)
 * goes to it in any case.
 *
 * Payloads have one owner at every step: `args` is the job's from the moment that it is stored there until
 * the CPU that starts the job takes it off; `result` and `reason` are the job's until it is freed. A payload
 * that is on its way (encoded and not yet stored, or taken off and not yet freed) is owned by the thread, as
 * the heap's header says.
 */
export const Job: Layout<
  | 'next'
  | 'task'
  | 'outcome'
  | 'control'
  | 'fn'
  | 'args'
  | 'result'
  | 'reason'
  | 'killKind'
  | 'owner'
  | 'spawner'
  | 'cpu'
  | 'starts'
  | 'crashes'
  | 'context'
  | 'affinity'
  | 'number'
  | 'spawnCount'
  | 'endCount'
  | 'rank'
  | 'switches'
  | 'preemptions'
  | 'began'
  | 'ended'
  | 'runTime'
  | 'waitTime'
> = record('job', {
  /** The list of ended jobs that the booting thread collects (completions.ts). */
  next: word,
  /** Its kernel task; 0 once that has ended. Whoever follows it is inside an RCU read section. */
  task: word,
  outcome: word,
  /** The bits below. */
  control: word,
  /** Which function: a number of the function table (functions.ts), or LOCAL_FUNCTION. */
  fn: word,
  args: word,
  result: word,
  /** What a kill was given, as a payload; written before `killKind`. */
  reason: word,
  /** NOT_KILLED, or which kill came first. By compare-exchange, from any thread. */
  killKind: word,
  /** The thread that holds the handle: the booting thread's id, or a CPU's. */
  owner: word,
  /**
   * The job of the task that spawned it; 0: it was spawned from outside, or detached. A hint: that one may be
   * gone.
   */
  spawner: word,
  /** The CPU that started it, plus 1; 0: not started yet. Stored before the first line runs. */
  cpu: word,
  /** How often it was started: more than once only where it is JOB_RESTARTABLE. */
  starts: word,
  /** How often the CPU that ran it died by itself. */
  crashes: word,
  /** The payload of what travels with the task: context, trace; 0: nothing. */
  context: word,
  /** The CPUs that it may start on: the entity's mask collapses when it starts. */
  affinity: words(2),
  /**
   * Counts all jobs of the kernel: what people see as the task's id. 0: the record is not filled in yet, or
   * no more.
   */
  number: word,
  /** What the thread that spawned it, and the one that ended it, had counted then (counters.ts). */
  spawnCount: word,
  endCount: word,
  /** What its kernel task came to in the end; stored when the two part. */
  rank: word,
  switches: word,
  preemptions: word,
  /** When it first ran, and when it ended, in the machine's milliseconds. */
  began: float64,
  ended: float64,
  /** Milliseconds that it was on a CPU; stored at its end. */
  runTime: float64,
  /** Milliseconds that it waited for one; stored when job and task part. */
  waitTime: float64,
})

/** Priority and nice in one word. */
export function rankOf(priority: number, nice: number): number {
  return (priority << 8) | (nice & 0xff)
}

export function priorityOfRank(rank: number): number {
  return rank >> 8
}

export function niceOfRank(rank: number): number {
  return (rank << 24) >> 24
}

export const OUTCOME_PENDING = 0
export const OUTCOME_RETURNED = 1
export const OUTCOME_THREW = 2
export const OUTCOME_KILLED = 3
export const OUTCOME_EVICTED = 4
export const OUTCOME_LOST = 5

/** (A) It has an outcome. */
export const JOB_ENDED = 1
/** (B) Nobody will ask for the result. */
export const JOB_DISOWNED = 2
/** It outlived the grace period of a kill: its CPU is being taken from it. */
export const JOB_EVICTING = 4
/** Started again when its CPU dies; `args` stays until it has ended. */
export const JOB_RESTARTABLE = 8
/** Its function and arguments are in the heap of the CPU that spawned it, and it runs only there. */
export const JOB_LOCAL = 16
/** The booting thread holds its handle. */
export const JOB_BOOTER = 32
/** It has no parent, and its result is not kept. */
export const JOB_DETACHED = 64

/** Who hands the job over: whoever ended it, or whoever gave it up. */
export const BY_ENDER = 128
export const BY_OWNER = 256

/** Its arguments came as a message to the CPU that it is allowed on; `args` says which (mail.ts). */
export const ARGS_MAILED = 512
/** Its result goes to the booting thread as a message. */
export const RESULT_MAILED = 1024
/** The booting thread has messages for it, which wait until it has begun. */
export const MAIL_WAITS = 2048
/** It has posted messages to the booting thread, which hears them before it is told of the end. */
export const POSTED = 8192

/** An async function: it awaits, and its CPU's event loop may run parts of it. */
export const ASYNC = 4096

export const LOCAL_FUNCTION: number = -1

/**
 * Which kill came first. Below 0: someone is about to say; it is the id + 1 of that thread, negated, and
 * `reason` is being written. Left so by a thread that died there, until it is recovered.
 */
export const NOT_KILLED = 0
/** `task.kill(reason)`. */
export const KILL_CALLED = 1
/** The spawn's `signal` was aborted. */
export const KILL_ABORTED = 2
/** The spawn's `timeout` has passed. */
export const KILL_TIMED_OUT = 3
/** The kernel closes. */
export const KILL_CLOSED = 4
