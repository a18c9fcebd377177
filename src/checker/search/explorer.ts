/**
 * How an execution ended.
 *   complete   no thread can move: all have ended, or those that have not are stuck
 *   asleep     everything from here on has been explored (in an optimal search only where ranges overlap in part, or where it was
 *              not known yet that an operation is a wait: see awaits.ts)
 *   redundant  a thread took a turn of a loop that changed nothing, and what it read has changed since
 *   truncated  it was longer than it may be
 *   pruned     it would have gone beyond the bound
 *   again      the search has found out something that it must know from its start, and begins anew: what it ran so far does not count
 */
export type Ended = 'complete' | 'asleep' | 'redundant' | 'truncated' | 'pruned' | 'again'

/** Decides which executions to run. Each call of `execute` runs one, on the machine it was made with. */
export interface Explorer {
  execute(): void
  readonly ended: Ended
  /** Whether there is another execution to run. */
  readonly hasMore: boolean
  /** How many events at the beginning of the last execution are those of the one before. */
  readonly common: number
  /** How much of the search is done, from 0 to 1, as far as can be known. */
  readonly fraction: number
  /** Something was left out: the search says less than "every interleaving". */
  readonly truncated: boolean
}
