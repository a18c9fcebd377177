/**
 * What a durable run asks its worker. The worker may get a question twice: after a takeover, or a lost
 * answer.
 */
export type Question =
  /** The stored result of a `once`: a `Stored`. */
  | { readonly call: 'journaled'; readonly key: string }
  /** Stores a result, unless there is one: the `Stored` that is there now. */
  | { readonly call: 'journal'; readonly key: string; readonly value: Uint8Array }
  /** Milliseconds until a sleep ends: a `Pause`. `wait`: the number of the wait in its run. */
  | { readonly call: 'sleep'; readonly wait: number; readonly ms: number }
  /** The message of a wait: a `Message`. */
  | { readonly call: 'receive'; readonly wait: number; readonly name: string; readonly timeout: number }
  | { readonly call: 'progress'; readonly value: string }

export interface Stored {
  readonly value: Uint8Array | null
}

/** The task sleeps so long, and asks again. 0: its wait is over. */
export interface Pause {
  readonly ms: number
}

export type Message = { readonly value: Uint8Array } | { readonly isLate: true } | Pause
