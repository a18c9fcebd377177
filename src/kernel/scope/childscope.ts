import { type Blocking, blocking, waitForm } from '../../coroutine/core/blocking.ts'
import { within } from '../../coroutine/core/within.ts'
import type { ChildTask } from '../join/childtask.ts'
import { spawn } from '../cpu/current.ts'
import type { ResultOf } from '../spawn/modules.ts'
import type { SpawnOptions } from '../boot/options.ts'
import { type BodyEnd, ScopeMembers } from './scopemembers.ts'

/** A scope inside a task: the argument of the body of `scope`. */
export class ChildScope {
  /** @internal */
  readonly members: ScopeMembers = new ScopeMembers()
  /** @internal Those whose end the scope has not handled yet. */
  readonly children: Set<ChildTask<any>> = new Set()
  /** @internal */
  isLeft = false
  private onEnd: (() => void) | null = null

  get signal(): AbortSignal {
    return this.members.controller.signal
  }

  /** As `spawn`, but the task ends with the scope. */
  spawn<A extends unknown[], R>(
    fn: (...args: A) => R,
    args?: A,
    options?: SpawnOptions,
  ): ChildTask<ResultOf<R>> {
    if (this.isLeft)
      throw new Error(`scope.spawn(${fn.name}): the scope has been left; spawn inside its body`)
    this.signal.throwIfAborted()
    const child = spawn(fn, args, options)
    this.children.add(child)
    this.members.running.add(child)
    child.then(
      () => this.ended(child),
      error => {
        this.members.failed(error)
        this.ended(child)
      },
    )
    return child
  }

  /** Kills the tasks of the scope. Leaving the scope waits for them. */
  cancel(reason: unknown = new DOMException('the scope was cancelled', 'AbortError')): void {
    this.members.cancel(reason)
  }

  /** @internal Resolves when a child has ended; the scope must have one. */
  nextEnd(): Promise<void> {
    return new Promise(resolve => {
      this.onEnd = resolve
    })
  }

  private ended(child: ChildTask<any>): void {
    this.children.delete(child)
    this.members.running.delete(child)
    this.onEnd?.()
  }
}

/** The result of a body: that of its generator, else its own. */
type Given<R> = R extends Generator<any, infer T, any> ? T : R

/**
 * Runs `body` with a scope for tasks, inside a task: `yield* scope(function* (scope) { … })` in a generator,
 * a plain call in a 'use task' function. Its result: scopemembers.ts.
 */
export const scope: <R>(body: (scope: ChildScope) => R) => Blocking<Given<R>> = blocking(
  'scope',
  function* (body: (scope: ChildScope) => unknown) {
    const opened = new ChildScope()
    let ended: BodyEnd
    try {
      ended = { threw: false, value: yield* within(body, [opened]) }
    } catch (error) {
      ended = { threw: true, value: error }
      opened.members.cancel(error)
    }
    while (opened.children.size > 0) {
      try {
        yield* waitForm(opened.nextEnd())
      } catch (error) {
        // The task itself is killed: its scope ends first.
        if (!ended.threw) ended = { threw: true, value: error }
        opened.members.cancel(error)
      }
    }
    return leave(opened, ended)
  },
) as never

/** The same for async functions: `await scopeAsync(async scope => { … })`. */
export async function scopeAsync<R>(body: (scope: ChildScope) => R | PromiseLike<R>): Promise<R> {
  const opened = new ChildScope()
  let ended: BodyEnd
  try {
    ended = { threw: false, value: await body(opened) }
  } catch (error) {
    ended = { threw: true, value: error }
    opened.members.cancel(error)
  }
  while (opened.children.size > 0) await opened.nextEnd()
  return leave(opened, ended) as R
}

function leave(opened: ChildScope, ended: BodyEnd): unknown {
  opened.isLeft = true
  const failure = opened.members.failure(ended)
  if (failure !== null) throw failure.error
  return ended.value
}
