/**
 * How an execution ended.
 *   complete   no thread can move: all have ended, or the others are blocked for ever
 *   asleep     all continuations have been explored. In an optimal search only where ranges overlap in part,
 *              or where an operation was not yet known to wait: see awaits.ts
 *   redundant  a thread took a turn of a loop that changed nothing, and a value that it read changed later
 *   truncated  it reached the step limit
 *   pruned     it would have exceeded the bound
 *   again      the search learnt a fact that it must know from its start, and starts again: the executions
 *              so far do not count
 */
export type Ended = 'complete' | 'asleep' | 'redundant' | 'truncated' | 'pruned' | 'again'

/** Decides which executions to run. Each call of `execute` runs one, on the machine of the explorer. */
export interface Explorer {
  execute(): void
  readonly ended: Ended
  /** Whether there is another execution to run. */
  readonly hasMore: boolean
  /** The number of events at the start of the last execution that are the same as in the one before. */
  readonly common: number
  /** An estimate of the fraction of the search that is done, from 0 to 1. */
  readonly fraction: number
  /** Part of the search was left out: it does not cover every interleaving. */
  readonly truncated: boolean
}
