import { EXT_MAJOR_PRIORITY, FAIR_MAJOR_PRIORITY } from './priority.ts'
import { RunQueue } from './runqueue.ts'
import type { Scheduler } from './scheduler.ts'
import { SWITCH_PREEMPTED, SWITCH_YIELDS } from './switch.ts'
import { LONG_TURN_MS, SHORT_TURN_MS, TURN_ESTIMATED, TURN_MEASURED, TURN_WINDOW_END } from './turnlength.ts'

/**
 * How often a CPU reads the clock at voluntary switches. A reading costs more than a switch. So while turns
 * are shorter than three microseconds, the CPU reads the clock at some switches only, at random:
 *
 *   FIFO   a yield or a sleep: at every 16th to 47th. The time since the last reading is charged to the task
 *          that runs then.
 *   fair   a yield: at every 32nd to 95th, and at the switch after that. So one turn is measured, and the
 *          turns of that window are estimated: each task has its own average (`Entity.turnTime`).
 *
 * In all other cases the CPU reads it at every switch: a turn of any other kind, a preemption, the ext class.
 *
 *   switch        ... | skipped    | skipped    | read       | read        | skipped    | ...
 *   turn that ends    | ESTIMATED  | ESTIMATED  | WINDOW_END | MEASURED    | ESTIMATED  |
 *
 * A window that took longer had a long turn in it, of a task that is not known. Then every turn is measured,
 * in the fair class until all turns of two rounds of the queue were short: the task is found in that time. A
 * task that had a long turn has a long average, and each of its turns is measured (`Scheduler.measuresTurn`)
 * until the average is short again. A turn that outlasts its slice is always seen: the tick interrupts it.
 */

/** After so many short turns, turns are short. */
const SHORT_TURNS = 64

/** How many short turns a turn counts for that was a little longer: it may have been disturbed. */
const DISTURBED = 32

export class TurnClock {
  private readonly s: Scheduler
  /**
   * Turns until the clock is read again, while turns are short. A caller that skips the reading counts it
   * down, and sets `s.turn`.
   */
  left = 0
  /** It was asked at this switch already, and the switch is not done yet. */
  asked = false
  /** Turns of this window that were skipped, if all of `left` were. */
  private skipped = 0
  private shortTurns = 0
  /** How many short turns end a time in which every turn is measured. */
  private needed = SHORT_TURNS
  private random = 0x2545_f491

  constructor(s: Scheduler) {
    this.s = s
  }

  atSwitch(why: number, priority: number): void {
    const { s } = this
    const level = priority >> 2
    const isFair = level === FAIR_MAJOR_PRIORITY
    if (s.measuresTurn) {
      s.measuresTurn = false
      s.turn = TURN_MEASURED
      s.readClock()
      return
    }
    if (this.left > 0 && mayBeSkipped(why, level)) {
      this.left--
      s.turn = TURN_ESTIMATED
      return
    }
    const skipped = this.skipped - this.left
    const before = s.clock
    const elapsed = s.readClock() - before
    this.left = 0
    this.skipped = 0
    s.turn = skipped === 0 ? TURN_MEASURED : TURN_WINDOW_END
    this.count(elapsed, skipped + 1, isFair)
    if (!s.turnsAreShort || (isFair && skipped !== 0)) return
    this.random = (Math.imul(this.random, 1_664_525) + 1_013_904_223) | 0
    this.left = isFair ? 31 + (this.random >>> 26) : 15 + (this.random >>> 27)
    this.skipped = this.left
  }

  private count(elapsed: number, turns: number, isFair: boolean): void {
    const { s } = this
    if (elapsed < turns * SHORT_TURN_MS) {
      this.shortTurns += turns
    } else if (turns === 1 && elapsed < LONG_TURN_MS) {
      this.shortTurns = Math.max(0, this.shortTurns - DISTURBED)
    } else {
      if (!isFair) this.needed = SHORT_TURNS
      else if (s.turnsAreShort) this.needed = Math.max(SHORT_TURNS, 2 * s.i32[s.queue + RunQueue.taskCount])
      this.shortTurns = 0
    }
    s.turnsAreShort = this.shortTurns >= this.needed
  }
}

function mayBeSkipped(why: number, level: number): boolean {
  if (level === FAIR_MAJOR_PRIORITY) return why === SWITCH_YIELDS
  return why !== SWITCH_PREEMPTED && level !== EXT_MAJOR_PRIORITY
}
