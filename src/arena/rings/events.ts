/**
 * The kinds of events in the rings (eventring.ts), and what their words hold. A task is named by its slot;
 * SPAWN and EXIT tell apart the tasks that use a slot one after the other. An actor is the task that runs on
 * the thread; or, below 0, thread t as -1 - t, or IDLE for a CPU that idles.
 *
 *   kind            task      a                 b                 c               d
 *   SWITCH          next      previous          why (switch.ts)   priority        previous priority
 *   WAKEUP          woken     CPU it goes to    waker             priority        why (taskrecord.ts)
 *   MIGRATE         task      from CPU          to CPU
 *   MOVE            task      from CPU          bytes of its state: it was started, and is packed
 *   SPAWN           task      spawner           priority          affinity, low   affinity, high
 *   NAME            task      bytes 0 to 15 of its name, little endian
 *   NAME_REST       task      bytes 16 to 31
 *   EXIT            task      exit code
 *   STOP, CONTINUE  task      actor
 *   PRIORITY        task      before            after             1: inherited
 *   BLOCK           task      why (BLOCK_)      what it waits for its owner, where known
 *   LOCK_CONTEND    actor     the lock          its owner
 *   LOCK_ACQUIRE    actor     the lock          1: after waiting
 *   LOCK_RELEASE    actor     the lock          1: it has waiters
 *   LOCK_HANDOFF    actor     the lock          the new owner
 *   FUTEX           actor     operation         word              result
 *   CPU_UP, _DOWN   -1        CPU               why
 *   POLICY          -1        what (POLICY_)    detail
 *   MARK            actor     value: low word   and high word of a float64; NaN: none
 *   MARK_NAME       actor     sixteen bytes of the name of the mark that follows; one or more of these
 */
export const SWITCH = 1
export const WAKEUP = 2
export const MIGRATE = 3
export const SPAWN = 4
export const NAME = 5
export const NAME_REST = 6
export const EXIT = 7
export const STOP = 8
export const CONTINUE = 9
export const PRIORITY = 10
export const BLOCK = 11
export const LOCK_CONTEND = 12
export const LOCK_ACQUIRE = 13
export const LOCK_RELEASE = 14
export const LOCK_HANDOFF = 15
export const FUTEX = 16
export const CPU_UP = 17
export const CPU_DOWN = 18
export const POLICY = 19
export const MARK = 20
export const MARK_NAME = 21
export const MOVE = 22

/** The CPU idles, or the waker is not known. */
export const IDLE = -0x8000_0000

export const BLOCK_FUTEX = 1
export const BLOCK_LOCK = 2

export const blockNames: readonly string[] = ['', 'futex', 'lock']

export const POLICY_LOADED = 1
export const POLICY_UNLOADED = 2
export const POLICY_EJECTED = 3

/** The event's name for a thread that is not a task. */
export function threadActor(thread: number): number {
  return -1 - thread
}

/** The thread behind an actor that is not a task. */
export function actorThread(actor: number): number {
  return -1 - actor
}
