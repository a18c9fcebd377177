import type { Co } from '../schedule/co.ts'
import { CoroutineError } from './errors.ts'

/** The errors of wrong calls, with what to do. */

export function exitedError(what: string): CoroutineError {
  return new CoroutineError('ERR_HEDDLE_SCHEDULE_EXITED', `${what}: the schedule has exited`)
}

export function isExitedError(error: unknown): boolean {
  return error instanceof CoroutineError && error.code === 'ERR_HEDDLE_SCHEDULE_EXITED'
}

/** Throws unless the coroutine can be resumed: suspended, or made so and not started. */
export function refuseResume(co: Co<any>): void {
  const who = `resume: coroutine ${co.name} #${co.id}`
  if (co.state === 'RUNNING') {
    throw new CoroutineError(
      'ERR_HEDDLE_CO_RUNNING',
      `${who} is running; only a suspended one can be resumed`,
    )
  }
  if (co.isQueued) {
    throw new CoroutineError(
      'ERR_HEDDLE_CO_READY',
      `${who} is ready already; only a suspended one can be resumed`,
    )
  }
}

/** Throws unless the coroutine is one of these. */
export function refuseForeign(what: string, co: Co<any>, coroutines: ReadonlyMap<number, Co<any>>): void {
  if (coroutines.get(co.id) === co) return
  const who = `${what}: coroutine ${co.name} #${co.id}`
  if (co.state === 'STOP') throw new CoroutineError('ERR_HEDDLE_CO_STOPPED', `${who} has ended`)
  throw new CoroutineError('ERR_HEDDLE_CO_FOREIGN', `${who} belongs to another schedule`)
}

/** Throws unless a coroutine is running and, where `co` is given, is that one. */
export function refuseUnlessRunning(what: string, running: Co<any> | null, co: Co<any> | undefined): void {
  if (running === null) {
    throw new CoroutineError(
      'ERR_HEDDLE_RUNNING_CO_NULL',
      `${what}: no coroutine of this schedule is running; only a coroutine can suspend, and only itself`,
    )
  }
  if (co !== undefined && co !== running) {
    throw new CoroutineError(
      'ERR_HEDDLE_RUNNING_CO',
      `${what}: ${running.name} #${running.id} is running, not ${co.name} #${co.id}; a coroutine suspends only itself`,
    )
  }
}
