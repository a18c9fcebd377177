import { Arena, ArenaPlan, type Region } from '../../arena/memory/arena.ts'
import { CpuRecord, cpuRecord, MachineRecord, reserveMachine } from '../core/cpurecord.ts'
import { startNodeTimekeeper } from '../node/node-thread.ts'
import { armSlice, disarmSlice, type TimekeeperBoot, wakeTimekeeper } from './timekeeper.ts'

/**
 * A timekeeper for a thread that is no CPU: a second thread that raises a word when a slice of this one ends.
 * All who ask for one on this thread share it, each with a CPU record of their own; it ends with the last of
 * them, and does not keep the process alive.
 */
export interface ThreadTimekeeper {
  readonly i32: Int32Array<SharedArrayBuffer>
  readonly region: Region
  /** Pointer of the CPU record that stands for whoever asked. */
  readonly cpu: number
  /** How far the timekeeper's clock is ahead of this thread's `performance.now()`, in milliseconds. */
  readonly shift: number
  /** Whether the second thread has begun to keep time. Ask before the first slice is armed, not after. */
  isRunning(): boolean
  /** Gives the record back. Once. */
  close(): void
}

/** How many can share the second thread; whoever comes after them reads the clock. */
const RECORDS = 8

interface SecondThread {
  readonly i32: Int32Array<SharedArrayBuffer>
  readonly region: Region
  readonly shift: number
  readonly free: number[]
  readonly terminate: () => void
}

let second: SecondThread | undefined

/** The globals that may or may not be there. */
interface Globals {
  readonly crossOriginIsolated?: boolean
  readonly Worker?: typeof Worker
}

/**
 * Undefined where there can be no second thread (no workers, or memory that cannot be shared), or too many
 * ask.
 */
export function startThreadTimekeeper(): ThreadTimekeeper | undefined {
  second ??= startThread()
  const thread = second
  const record = thread?.free.pop()
  if (thread === undefined || record === undefined) return undefined
  const { i32, region, shift } = thread
  const cpu = cpuRecord(region, record)
  // A slice that is over already: the timekeeper takes it when it comes up.
  armSlice(i32, region, cpu, performance.now() + shift)
  return {
    i32,
    region,
    cpu,
    shift,
    isRunning: () => Atomics.load(i32, cpu + CpuRecord.sliceEnd) === 0,
    close: () => {
      disarmSlice(i32, cpu)
      thread.free.push(record)
      if (thread.free.length === RECORDS) endThread(thread)
    },
  }
}

function endThread(thread: SecondThread): void {
  if (second === thread) second = undefined
  Atomics.store(thread.i32, thread.region.start + MachineRecord.shutdown, 1)
  wakeTimekeeper(thread.i32, thread.region)
  thread.terminate()
}

function startThread(): SecondThread | undefined {
  const { crossOriginIsolated } = globalThis as unknown as Globals
  if (typeof SharedArrayBuffer === 'undefined' || crossOriginIsolated === false) return undefined
  const plan = new ArenaPlan()
  const region = reserveMachine(plan, RECORDS)
  const { buffer, i32 } = Arena.create(plan)
  const here = performance.now()
  const terminate = startNodeTimekeeper({ buffer, region }) ?? startWebTimekeeper({ buffer, region, here })
  return terminate && { i32, region, shift: -here, free: allRecords(), terminate }
}

interface WebTimekeeper extends Omit<TimekeeperBoot, 'origin'> {
  /** What `performance.now()` says here. */
  readonly here: number
}

function startWebTimekeeper({ buffer, region, here }: WebTimekeeper): (() => void) | undefined {
  if ((globalThis as unknown as Globals).Worker === undefined) return undefined
  const worker = new Worker(new URL('../web/web-timekeeper.ts', import.meta.url), {
    type: 'module',
    name: 'heddle timekeeper',
  })
  const boot: TimekeeperBoot = { buffer, region, origin: performance.timeOrigin + here }
  worker.postMessage(boot)
  return () => worker.terminate()
}

function allRecords(): number[] {
  return Array.from({ length: RECORDS }, (_, record) => RECORDS - 1 - record)
}
