import { currentFutexes } from '../../futex/core/currentfutexes.ts'
import { here } from '../../kernel/cpu/here.ts'
import { currentTask } from '../../kernel/cpu/taskwaiter.ts'
import { current } from '../../kernel/cpu/current.ts'
import { asyncOwnerOf } from '../wait/asyncowner.ts'

/** The name of the caller in reports. `tid` is the caller's. */
export function callerName(tid: number): string {
  const view = here.view
  if (currentTask()?.owner.tid === tid && view !== null) {
    const { name, id } = current()
    return name === '' ? `task ${id}` : `task '${name}' (${id})`
  }
  const co = here.runner?.running?.() as { readonly name?: string } | null | undefined
  if (co !== null && co !== undefined) return `coroutine '${co.name ?? ''}' (${tid})`
  const { id } = currentFutexes().context.thread
  return asyncOwnerOf(tid) === undefined ? `thread ${id}` : `async code of thread ${id} (${tid})`
}
