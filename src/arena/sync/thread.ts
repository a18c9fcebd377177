import type { Arena } from '../memory/arena.ts'

/** CPUs are 0 to 63, so that a CPU mask is one 64-bit set. Ids from 64 up are threads that are not CPUs. */
export const CPU_MAX = 64

/** How many threads may be in the kernel at a time: an id must fit the owner field of a lock word. */
export const THREAD_MAX = 255

/** About two microseconds, several times the longest critical section. */
const SPINS_BEFORE_PARK = 200

/**
 * What a kernel does for one of its threads that waits inside a lower layer: only the kernel knows which
 * threads are dead and what they owned (src/kernel/recovery).
 */
export interface Rescuer {
  /**
   * Called from time to time while the thread waits for thread `owner`: at `lock`, or at a word of a task
   * that is on that CPU (then `lock` is 0). True: the owner is dead, and what it left behind is repaired.
   */
  repairDead(owner: number, lock: number): boolean
  /**
   * Between the two calls the ids of dead threads are not used again: the thread does something in place of
   * a dead one (awaiting.ts). Calls nest.
   */
  keepIds?(): void
  freeIds?(): void
  /**
   * Called from time to time while the thread blocks with no lock held: it serves threads that depend on it.
   */
  serveWhileBlocked?(): void
}

/**
 * A thread of the kernel: a CPU, or a plain thread that calls the kernel (the main thread, a worker of the
 * program). Each operating-system thread makes one object and passes it to every kernel call; the object
 * never crosses threads. It is not in shared memory: what other threads must read of a thread is in its CPU
 * record.
 */
export class KernelThread {
  readonly arena: Arena
  readonly i32: Int32Array<SharedArrayBuffer>
  readonly id: number
  /** The owner field of a lock word while this thread holds the lock: never 0. */
  readonly ownerTag: number
  /** False where `Atomics.wait` throws (a browser's main thread): such a thread spins instead of parking. */
  readonly mayBlock: boolean
  /** How often it reads a taken lock before it parks. */
  readonly spins: number
  readonly debug: boolean
  /**
   * How many sections of the kernel this thread is in (section.ts), and the first lock that it took in them
   * and still has, or 0.
   */
  sections = 0
  outerLock = 0
  /** Debug builds: the locks held, innermost last, as pointers. */
  readonly heldLocks: number[] = []
  /** Null on a thread that cannot see deaths: it waits until another thread recovers from them. */
  rescuer: Rescuer | null = null

  constructor(arena: Arena, id: number, mayBlock = true, spins: number = SPINS_BEFORE_PARK) {
    if (!Number.isInteger(id) || id < 0 || id >= THREAD_MAX) {
      throw new RangeError(`KernelThread(id: ${id}): an id is an integer from 0 to ${THREAD_MAX - 1}`)
    }
    this.arena = arena
    this.i32 = arena.i32
    this.id = id
    this.ownerTag = id + 1
    this.mayBlock = mayBlock
    this.spins = spins
    this.debug = arena.debug
  }
}
