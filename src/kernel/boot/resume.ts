import type { CodeChangedError } from '../../coroutine/core/movable.ts'
import { type Known, refuseUnknown } from '../../coroutine/core/knownoptions.ts'
import { imageFromBytes } from '../../payload/imagebytes.ts'
import { readSuspended, type SuspendedTask } from '../cpu/suspendedtask.ts'
import { checkSpawnOptions, priorityName, type SpawnOptions } from './options.ts'
import type { Kernel } from './kernel.ts'

/** Gets the image of a task whose code has changed. Its result is the result of the task. */
export type Migration<T> = (image: Uint8Array, error: CodeChangedError) => T | PromiseLike<T>

/**
 * The options of `kernel.resume`. All that the task did after its image was made happens again. Name,
 * priority and nice are those of the suspended task by default.
 */
export interface ResumeOptions<T = unknown>
  extends Pick<
    SpawnOptions,
    'name' | 'priority' | 'nice' | 'slice' | 'affinity' | 'signal' | 'timeout' | 'checkpoint'
  > {
  /**
   * What happens when a function of the task has another body than it had. 'restart': the task begins again
   * with its first arguments; it must have been spawned with `restartable: true`. A function migrates the
   * image. Default: the task fails with a CodeChangedError.
   */
  readonly onCodeChanged?: 'restart' | Migration<T>
  /**
   * Whether the CPUs import modules that the image needs and that are not loaded, from where the image says
   * that they were. False, for images that others could have changed: the task then fails with a
   * ModuleMissingError. Default: true.
   */
  readonly imports?: boolean
}

export const resumeOptions: Known<ResumeOptions> = {
  name: true,
  priority: true,
  nice: true,
  slice: true,
  affinity: true,
  signal: true,
  timeout: true,
  checkpoint: true,
  onCodeChanged: true,
  imports: true,
}

export interface ResumedTask {
  readonly image: Uint8Array
  readonly args: Uint8Array | null
  readonly task: SuspendedTask
  readonly name: string
  readonly options: SpawnOptions
  readonly imports: boolean
}

/** Checks the arguments of `kernel.resume`. Throws, and has changed nothing. */
export function readResumed(bytes: Uint8Array, given: ResumeOptions<any>, cpus: number): ResumedTask {
  refuseUnknown('resume(image, options)', given, resumeOptions)
  const { onCodeChanged, imports = true, ...asked } = given
  if (typeof imports !== 'boolean')
    throw new TypeError(`imports: ${String(imports)} is not a boolean; give true or false`)
  const { task, args, image } = readSuspended(bytes)
  if (onCodeChanged !== undefined && onCodeChanged !== 'restart' && typeof onCodeChanged !== 'function') {
    throw new TypeError(
      `onCodeChanged: ${String(onCodeChanged)} is not a way to go on; give 'restart' or a function`,
    )
  }
  if (onCodeChanged === 'restart' && (args === null || task.fn === null)) {
    throw new TypeError(
      `onCodeChanged: 'restart': task ${task.name} was not spawned with \`restartable: true\`; give a function instead`,
    )
  }
  const options: SpawnOptions = { priority: priorityName(task.priority), nice: task.nice, ...asked }
  checkSpawnOptions(options, cpus)
  return { image, args, task, name: options.name ?? task.name, options, imports }
}

/** What the handle does with the failure of a task whose code has changed. */
export function insteadOf<T>(
  kernel: Kernel,
  { args, task, name, options }: ResumedTask,
  bytes: Uint8Array,
  onCodeChanged: 'restart' | Migration<T>,
): (error: unknown) => PromiseLike<unknown> | null {
  return error => {
    if (!isCodeChange(error)) return null
    if (onCodeChanged !== 'restart') return Promise.resolve().then(() => onCodeChanged(bytes, error))
    return restart()
  }

  async function restart(): Promise<unknown> {
    const { module, name: exported } = task.fn!
    const found = await kernel.import<Record<string, (...args: any[]) => unknown>>(module)
    const fn = found[exported]
    if (fn === undefined)
      throw new TypeError(
        `resume: ${module} exports no function ${exported} any more; give onCodeChanged a function`,
      )
    return await kernel.spawn(fn, imageFromBytes(args!) as unknown[], { ...options, name, restartable: true })
  }
}

/** By its code: the error was made on a CPU, and its class has travelled. */
function isCodeChange(error: unknown): error is CodeChangedError {
  return (error as { code?: unknown } | null)?.code === 'ERR_HEDDLE_CODE_CHANGED'
}
