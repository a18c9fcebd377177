import { Arena, ArenaPlan, type Region } from '../../arena/memory/arena.ts'
import { CpuRecord, cpuRecord, MachineRecord, reserveMachine } from '../core/cpurecord.ts'
import { startNodeTimekeeper } from '../node/node-thread.ts'
import { armSlice, disarmSlice, type TimekeeperBoot, wakeTimekeeper } from './timekeeper.ts'

/**
 * A timekeeper for a thread that is not a CPU: a second thread raises a word when a slice of this one ends.
 * All callers on this thread share it, each with its own CPU record. It ends with the last of them, and does
 * not keep the process alive.
 */
export interface ThreadTimekeeper {
  readonly i32: Int32Array<SharedArrayBuffer>
  readonly region: Region
  /** The CPU record of this caller. */
  readonly cpu: number
  /** How far the timekeeper's clock is ahead of this thread's `performance.now()`, in milliseconds. */
  readonly shift: number
  /** Whether the second thread keeps time already. Ask before the first slice is armed, not after. */
  isRunning(): boolean
  /** Releases the record. Call it once. */
  close(): void
}

/** How many callers can share the second thread. Later callers use the clock. */
const RECORDS = 8

interface SecondThread {
  readonly i32: Int32Array<SharedArrayBuffer>
  readonly region: Region
  readonly shift: number
  readonly free: number[]
  readonly terminate: () => void
}

let second: SecondThread | undefined

/** Globals that may be missing. */
interface Globals {
  readonly crossOriginIsolated?: boolean
  readonly Worker?: typeof Worker
}

/**
 * Returns undefined if there can be no second thread (no workers, or no shared memory), or if all records are
 * in use.
 */
export function startThreadTimekeeper(): ThreadTimekeeper | undefined {
  second ??= startThread()
  const thread = second
  const record = thread?.free.pop()
  if (thread === undefined || record === undefined) return undefined
  const { i32, region, shift } = thread
  const cpu = cpuRecord(region, record)
  // Arm a slice that is over already: the timekeeper expires it when it starts, which shows that it runs.
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
  /** `performance.now()` of the caller's thread. */
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
