import type { RunEventKind } from '../states.ts'

/**
 * What a worker does with a run, for displays. 'lost': another worker has it, or its lease is left to lapse.
 */
export interface Activity {
  readonly run: string
  readonly name: string
  readonly kind: Extract<RunEventKind, 'claimed' | 'completed' | 'failed' | 'cancelled'> | Departure | 'lost'
  /** How often workers have claimed it. */
  readonly epoch: number
  /** Whether an image has its state: a claimed run goes on from there, and one that leaves will. */
  readonly hasImage: boolean
  /** Why it failed, is blocked, or was lost; null: there is no reason. */
  readonly why: string | null
}

/** How a run leaves its worker without having ended. */
export type Departure = Extract<RunEventKind, 'asleep' | 'waiting' | 'blocked' | 'released' | 'error'>
