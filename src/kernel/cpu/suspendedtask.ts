import { ImageError } from '../../payload/imagekinds.ts'
import { imageToBytes } from '../../payload/imagebytes.ts'
import { Entity } from '../../sched/core/entity.ts'
import { TaskRecord } from '../../sched/core/taskrecord.ts'
import { Job, JOB_RESTARTABLE } from '../spawn/job.ts'
import type { CpuTask } from './cputask.ts'
import type { KernelCpu } from './kernelcpu.ts'
import { imageOf } from './taskimage.ts'

/**
 * A task outside of a kernel: bytes that `kernel.resume` goes on with, in this process or another.
 *
 *   bytes 0-3   'hdlT'
 *         4-7   the length of the description, in bytes, with its padding
 *         8…    the description: JSON in UTF-8, padded with spaces to a multiple of 8 bytes
 *         then  the arguments of a restartable task, `argsBytes` long: an image (payload/imagebytes.ts)
 *         then  the state of the task: an image
 *
 * The thread that resumes a task reads only the description: it need not load the task's code.
 */
export interface SuspendedTask {
  readonly name: string
  readonly priority: number
  readonly nice: number
  /** The function that the task began with, and the module that exports it. */
  readonly fn: { readonly module: string; readonly name: string } | null
  /** The length of the image of its arguments; 0: it cannot restart. */
  readonly argsBytes: number
}

const MAGIC = 0x546c6468
const HEADER_BYTES = 8

/** The bytes of a task that does not run, on its CPU. Throws UntravelableError, and has changed nothing. */
export function suspendedBytes(on: KernelCpu, run: CpuTask): Uint8Array {
  const { i32 } = on.view
  const image = imageToBytes(imageOf(run), '')
  const args = argumentsOf(on, run.job)
  const se = i32[run.task + TaskRecord.entity]
  const description: SuspendedTask = {
    name: on.nameOf(run),
    priority: i32[se + Entity.basePriority],
    nice: i32[se + Entity.nice],
    fn: on.code.nameOf(i32[run.job + Job.fn]),
    argsBytes: args.length,
  }
  const json = new TextEncoder().encode(JSON.stringify(description))
  const length = Math.ceil(json.length / 8) * 8
  const end = HEADER_BYTES + length
  const bytes = new Uint8Array(end + args.length + image.length).fill(0x20, HEADER_BYTES, end)
  const header = new DataView(bytes.buffer)
  header.setUint32(0, MAGIC, true)
  header.setUint32(4, length, true)
  bytes.set(json, HEADER_BYTES)
  bytes.set(args, end)
  bytes.set(image, end + args.length)
  return bytes
}

function argumentsOf({ view: { i32, codec } }: KernelCpu, job: number): Uint8Array {
  if ((Atomics.load(i32, job + Job.control) & JOB_RESTARTABLE) === 0) return new Uint8Array(0)
  const word = i32[job + Job.args]
  return imageToBytes(word === 0 ? [] : codec.decode(word), 'args')
}

export interface ReadTask {
  readonly task: SuspendedTask
  /** The arguments of a restartable task; null: it cannot restart. */
  readonly args: Uint8Array | null
  readonly image: Uint8Array
}

/** Reads the description, and finds the image. Throws ImageError if the bytes are no suspended task. */
export function readSuspended(bytes: Uint8Array): ReadTask {
  if (!(bytes instanceof Uint8Array))
    throw new TypeError(`resume(image): ${describe(bytes)} is no image; give the result of suspendToBytes()`)
  const header = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (bytes.length < HEADER_BYTES || header.getUint32(0, true) !== MAGIC)
    throw new ImageError(
      'resume(image): these bytes are no suspended task; give the result of suspendToBytes()',
    )
  const length = header.getUint32(4, true)
  if (HEADER_BYTES + length > bytes.length)
    throw new ImageError(
      `resume(image): ${bytes.length} bytes are only a part of the image; give all of them`,
    )
  const json = new TextDecoder().decode(bytes.subarray(HEADER_BYTES, HEADER_BYTES + length))
  let task: unknown
  try {
    task = JSON.parse(json)
  } catch (error) {
    throw new ImageError(
      'resume(image): the description of the task is damaged; use another copy of the image',
      {
        cause: error,
      },
    )
  }
  if (!isDescription(task))
    throw new ImageError(
      'resume(image): the description of the task is damaged; use another copy of the image',
    )
  const end = HEADER_BYTES + length + task.argsBytes
  const args = task.argsBytes === 0 ? null : new Uint8Array(bytes.subarray(HEADER_BYTES + length, end))
  return { task, args, image: new Uint8Array(bytes.subarray(end)) }
}

function isDescription(value: unknown): value is SuspendedTask {
  const { name, priority, nice, fn, argsBytes } = (value ?? {}) as Partial<SuspendedTask>
  return (
    typeof name === 'string' &&
    Number.isInteger(priority) &&
    priority! >= 4 &&
    priority! <= 251 &&
    Number.isInteger(nice) &&
    nice! >= -20 &&
    nice! <= 19 &&
    Number.isInteger(argsBytes) &&
    argsBytes! >= 0 &&
    (fn === null || (typeof fn?.module === 'string' && typeof fn.name === 'string'))
  )
}

function describe(value: unknown): string {
  return value === null ? 'null' : typeof value
}
