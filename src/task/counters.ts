import { type Layout, ownLine, record, word } from '../arena/record.ts'

/** Words of the kernel as a whole. Atomic, from any thread. */
export const Counters: Layout<'jobs' | 'active' | 'kills'> = record('counters', {
  /** Jobs ever made: where their numbers come from. */
  jobs: ownLine(word),
  /** Jobs that have no outcome yet. */
  active: ownLine(word),
  /** Kills ever asked for: the booting thread sees that there are new ones to keep the time of. */
  kills: ownLine(word),
})
