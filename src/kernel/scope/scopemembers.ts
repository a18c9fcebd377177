import { TaskKilledError } from '../join/errors.ts'

const SCOPE_CANCELLED = 'ERR_HEDDLE_SCOPE_CANCELLED'

/**
 * Structured scopes: the tasks of a scope do not outlive it. Leaving the scope joins them. When the body or a
 * task fails, the others are killed first.
 *
 *   body     tasks          result of the scope
 *   ----     -----          -------------------
 *   returns  all return     the body's result
 *   returns  some fail      the rest is killed; AggregateError of the failures, in the order of their ends
 *   throws   all return     the rest is killed; throws the body's error
 *   throws   some fail      the rest is killed; AggregateError: the body's error first, unless it
 *                                 is one of the failures
 *
 * A task that ended because the scope killed it is not a failure.
 */
export class ScopeMembers {
  readonly failures: unknown[] = []
  readonly controller: AbortController = new AbortController()
  readonly running: Set<{ kill(reason?: unknown): boolean }> = new Set()
  isCancelled = false

  failed(error: unknown): void {
    if (!(this.isCancelled && isByScope(error))) this.failures.push(error)
    this.cancel(error)
  }

  cancel(reason: unknown): void {
    if (this.isCancelled) return
    this.isCancelled = true
    const cancelled = new ScopeCancelled(reason)
    this.controller.abort(reason)
    for (const task of this.running) task.kill(cancelled)
  }

  /** The error of leaving the scope; null: nothing failed. */
  failure(body: BodyEnd): { readonly error: unknown } | null {
    const { failures } = this
    if (failures.length === 0) return body.threw ? { error: body.value } : null
    const all = body.threw && !failures.includes(body.value) ? [body.value, ...failures] : failures
    const [first] = all
    const message = first instanceof Error ? first.message : String(first)
    const count = failures.length === 1 ? 'a task of the scope' : `${failures.length} tasks of the scope`
    return { error: new AggregateError(all, `${count} failed: ${message}`, { cause: first }) }
  }
}

/** How the body of a scope ended. */
export interface BodyEnd {
  readonly threw: boolean
  readonly value: unknown
}

/** Why a task of a scope was killed: a failure left the scope. `cause` is that failure. */
export class ScopeCancelled extends Error {
  override readonly name: string = 'ScopeCancelled'
  readonly code: string = SCOPE_CANCELLED

  constructor(cause: unknown) {
    super('its scope was left by a failure', { cause })
  }
}

/** Whether a task ended because a scope was left. Decided by the code: the reason is a copy. */
function isByScope(error: unknown): boolean {
  return (
    error instanceof TaskKilledError &&
    (error.cause as { code?: unknown } | undefined)?.code === SCOPE_CANCELLED
  )
}
