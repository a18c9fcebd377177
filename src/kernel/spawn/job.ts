import { float64, type Layout, record, word, words } from '../../arena/memory/record.ts'

/**
 * A task in the kernel consists of these objects:
 *
 *   TaskRecord   the task in the scheduler (src/sched): a record in the arena, freed when the task ends
 *   Entity       the part of a TaskRecord that run queues hold
 *   Job          the spawned call, with its function, arguments and outcome: a record in the arena, freed
 *                when the outcome was delivered
 *   CpuTask      a started task in the heap of its CPU: its coroutine, locals and signal
 *   Task         the handle on the booting thread; a ChildTask is the handle in the task that spawned it.
 *                TaskHandle is their common part
 *
 * The job outlives its TaskRecord, and a restartable job has several of them, one after the other. So both
 * exist, and the figures of a task (`rank`, `runTime`, `waitTime`) are copied into the job when they
 * separate.
 *
 * `outcome` is the join word: it changes once, from OUTCOME_PENDING to one of the others. Joiners wait for
 * that at a futex.
 *
 *   [0] OUTCOME_PENDING   queued, running or asleep      its CPU -> [1] [2] [3] [6]; recovery -> [4] [5]
 *   [1] OUTCOME_RETURNED  `result` is the value's payload, or 0 for undefined
 *   [2] OUTCOME_THREW     `result` is the error's payload
 *   [3] OUTCOME_KILLED    the kill was thrown into it, and it ended so; `result` is 0, `reason` is set
 *   [4] OUTCOME_EVICTED   it did not end within the grace period of a kill, and lost its CPU
 *   [5] OUTCOME_LOST      its CPU died; `result` is 0 or the payload of the details
 *   [6] OUTCOME_SUSPENDED its state left the kernel; `result` is the image (image.ts)
 *
 * `control` is a set of bits. Two of them decide which side handles a job that no task will join, by one
 * atomic `or` each:
 *
 *   ender                                      holder of the handle
 *   -----                                      --------------------
 *   (A) or(control, JOB_ENDED)                 (B) or(control, JOB_DISOWNED)
 *
 * The second of the two finds the other's bit, and hands the job to the booting thread, which reports a
 * failure and frees the record. The bit JOB_BY_ENDER or JOB_BY_OWNER, set together with its own bit, records
 * which side this is, in case that side dies. A job that the booting thread spawned (JOB_BOOTER) goes to it
 * in any case.
 *
 * Payloads have one owner at every step. The job owns `args` from when it is stored there until the CPU that
 * starts the job takes it; it owns `result` and `reason` until it is freed. A payload in between (encoded and
 * not yet stored, or taken and not yet freed) is owned by the thread, as the heap's header says.
 */
export const Job: Layout<
  | 'began'
  | 'ended'
  | 'runTime'
  | 'waitTime'
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
> = record('job', {
  /** When it first ran, and when it ended, in the machine's milliseconds. */
  began: float64,
  ended: float64,
  /** Milliseconds that it was on a CPU; stored at its end. */
  runTime: float64,
  /** Milliseconds that it waited for a CPU; stored when job and task separate. */
  waitTime: float64,
  /** The list of ended jobs that the booting thread collects (completions.ts). */
  next: word,
  /** Its TaskRecord; 0 once that has ended. A reader is inside an RCU read section. */
  task: word,
  outcome: word,
  /** The JOB_ bits. */
  control: word,
  /** Its function: a number of the function table (functions.ts), or LOCAL_FUNCTION. */
  fn: word,
  args: word,
  result: word,
  /** The reason of a kill, as a payload; written before `killKind`. */
  reason: word,
  /** NOT_KILLED, or the kind of the first kill. By compare-exchange, from any thread. */
  killKind: word,
  /** The thread that holds the handle: the booting thread's id, or a CPU's. */
  owner: word,
  /**
   * The job of the task that spawned it; 0: spawned by the booting thread, or detached. A hint: that job may
   * be gone.
   */
  spawner: word,
  /** The CPU that started it, plus 1; 0: not started yet. Stored before the first line runs. */
  cpu: word,
  /** How often it was started: more than once only if it is JOB_RESTARTABLE. */
  starts: word,
  /** How often its CPU died by itself. */
  crashes: word,
  /** The payload of the task's context and trace; 0: none. */
  context: word,
  /** The CPUs that it may start on: the entity's mask shrinks to one CPU at the start. */
  affinity: words(2),
  /** The task's id for users: the kernel numbers all jobs. 0: the record is not filled yet, or freed. */
  number: word,
  /** The counts of the spawning and of the ending thread at that time (counters.ts). */
  spawnCount: word,
  endCount: word,
  /** The final priority and nice of its task; stored when they separate. */
  rank: word,
  switches: word,
  preemptions: word,
})

/** The words of a job that are used: with the header that stands before it, two lines. */
export const JOB_WORDS: number = Job.preemptions + 1

/**
 * The state of a started task outside of its CPU's heap: images, checkpoints, and requests for them. Few jobs
 * have any, so it is outside of the job. The words are 0 unless `control` has JOB_HAS_IMAGES: a thread sets
 * that bit before it writes one. They are cleared at the next spawn into the slot, which finds the bit there.
 */
export const JobImages: Layout<
  | 'image'
  | 'moves'
  | 'movedFrom'
  | 'imageBytes'
  | 'checkpoints'
  | 'checkpoint'
  | 'asks'
  | 'answers'
  | 'reply'
  | 'checkpointAt'
  | 'checkpointEvery'
> = record('images of a job', {
  /** The state of a started task that is packed (sched/balance/move.ts), as a payload; 0: it is not. */
  image: word,
  /** How often its task has moved, the CPU that it came from last, and the bytes of its state then. */
  moves: word,
  movedFrom: word,
  imageBytes: word,
  /** Two payloads, one of which is the last checkpoint (checkpointer.ts). */
  checkpoints: words(2),
  /** Which of the two it is, plus 1; 0: there is none. */
  checkpoint: word,
  /** A request for its state, and the last request that was answered (asking.ts). */
  asks: word,
  answers: word,
  /** The image that was asked for, as the payload of its bytes. */
  reply: word,
  /** When the last checkpoint was written, in the machine's milliseconds. */
  checkpointAt: float64,
  /** Milliseconds between two checkpoints; 0: only on request. */
  checkpointEvery: float64,
})

/** Its words that hold payloads. */
export const imagePayloads: readonly number[] = [
  JobImages.image,
  JobImages.reply,
  JobImages.checkpoints,
  JobImages.checkpoints + 1,
]

/** Packs priority and nice into one word. */
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
export const OUTCOME_SUSPENDED = 6

/** (A) It has an outcome. */
export const JOB_ENDED = 1
/** (B) No task will take the result. */
export const JOB_DISOWNED = 2
/** It outlived the grace period of a kill, and is losing its CPU. */
export const JOB_EVICTING = 4
/** It restarts when its CPU dies; `args` stays until it has ended. */
export const JOB_RESTARTABLE = 8
/** Its function and arguments are in the heap of the CPU that spawned it, and it runs only there. */
export const JOB_LOCAL = 16
/** The booting thread holds its handle. */
export const JOB_BOOTER = 32
/** It has no parent, and its result is not kept. */
export const JOB_DETACHED = 64

/** Which side hands the job over: the ender, or the holder of its handle. */
export const JOB_BY_ENDER = 128
export const JOB_BY_OWNER = 256

/** Its arguments are sent as a message to its only CPU; `args` is the number of that message (mail.ts). */
export const JOB_ARGS_MAILED = 512
/** Its result is sent to the booting thread as a message. */
export const JOB_RESULT_MAILED = 1024
/** The booting thread has messages for it, which wait until it has begun. */
export const JOB_HAS_MAIL = 2048
/** It has posted messages to the booting thread, which are delivered before its outcome. */
export const JOB_POSTED = 8192

/** An async function: its CPU's event loop may run parts of it. */
export const JOB_ASYNC = 4096

/** The spawn said `movable: false`: its task stays on the CPU that starts it. */
export const JOB_PINNED = 16384
/** It runs a movable function, and was not pinned; set when it starts. */
export const JOB_MOVABLE = 32768
/** `image` is a Uint8Array, the bytes of an image, and not the image itself. */
export const JOB_IMAGE_BYTES = 65536
/** Its checkpoint is due, and waits for a later safepoint. Set and cleared by its CPU. */
export const JOB_CHECKPOINT_WAITS = 131072
/** The CPU that goes on with the image imports no module for it: it has all of them, or the task fails. */
export const JOB_NO_IMPORTS = 262144
/** Its words of JobImages may not be 0. It stays set until the next spawn into the slot. */
export const JOB_HAS_IMAGES = 524288

export const LOCAL_FUNCTION: number = -1

/**
 * The kind of the first kill. Below 0: a killer is writing `reason`; the value is the id + 1 of its thread,
 * negated. If that thread dies, it stays so until recovery.
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
