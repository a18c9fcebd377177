/** A worker of a parallel search: loads the check and explores the parts that it receives. */
import { parentPort } from 'node:worker_threads'
import { CheckError } from '../errors.ts'
import { loadChecks } from '../run/files.ts'
import { BeginAgain } from '../machine/memory.ts'
import type { CheckOptions } from '../run/options.ts'
import { formatSchedule } from '../machine/schedule.ts'
import { type CheckResult, Search, type SearchPart } from './search.ts'

export interface ToWorker {
  readonly file: string
  readonly name: string
  readonly id: string
  readonly part: SearchPart | undefined
  readonly options: CheckOptions
}

export type FromWorker =
  | {
      readonly kind: 'done'
      readonly result: Omit<CheckResult, 'failure'>
      readonly happened: boolean
      /** The schedule of a failure. */
      readonly schedule: string | undefined
    }
  | {
      readonly kind: 'again'
      readonly shift: number
      readonly mixed: number[]
      readonly unfit: readonly number[]
    }
  | { readonly kind: 'wrong'; readonly code: string; readonly message: string }

parentPort?.on('message', (message: ToWorker) => {
  void explore(message).then(answer => parentPort?.postMessage(answer))
})

async function explore({ file, name, id, part, options }: ToWorker): Promise<FromWorker> {
  try {
    const check = (await loadChecks(file)).find(one => one.id === id)
    if (check === undefined || !('setup' in check))
      throw new CheckError('ERR_CHECK_LOAD', `${file} declares no check ${name} any more`)
    const search = new Search(name, options, check.setup, part)
    search.run()
    const { failure, ...result } = search.result
    return {
      kind: 'done',
      result,
      happened: search.happened,
      schedule: failure === undefined ? undefined : formatSchedule(failure.schedule),
    }
  } catch (error) {
    if (error instanceof BeginAgain)
      return { kind: 'again', shift: error.shift, mixed: [...(error.mixed ?? [])], unfit: error.unfit }
    if (error instanceof CheckError) return { kind: 'wrong', code: error.code, message: error.message }
    throw error
  }
}
