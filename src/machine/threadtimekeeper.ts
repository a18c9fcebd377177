import { Arena, ArenaPlan, type Region } from '../arena/arena.ts'
import { CpuRecord, cpuRecord, MachineRecord, reserveMachine } from './cpurecord.ts'
import { armSlice, disarmSlice, wakeTimekeeper } from './timekeeper.ts'

/**
 * A timekeeper for one thread that is no CPU: a machine of one CPU record, and a second thread that raises its word.
 * It does not keep the process alive.
 */
export interface ThreadTimekeeper {
  readonly i32: Int32Array<SharedArrayBuffer>
  readonly region: Region
  /** Pointer of the CPU record that stands for this thread. */
  readonly cpu: number
  /** How far the timekeeper's clock is ahead of this thread's `performance.now()`, in milliseconds. */
  readonly shift: number
  /** Whether the second thread has begun to keep time. Ask before the first slice is armed, not after. */
  isRunning(): boolean
  close(): void
}

/** The globals that may or may not be there. */
interface Globals {
  readonly process?: { getBuiltinModule?(name: string): unknown; hrtime?(): [number, number] }
  readonly crossOriginIsolated?: boolean
  readonly Worker?: typeof Worker
}

interface NodeWorker {
  unref(): void
  on(event: 'error', listener: (error: unknown) => void): unknown
  terminate(): unknown
}

interface WorkerThreads {
  readonly Worker: new (file: URL, options: object) => NodeWorker
}

/** What both kinds of thread are told. */
export interface ThreadTimekeeperBoot {
  readonly buffer: SharedArrayBuffer
  readonly region: Region
  readonly origin: number
}

/** Starts one; undefined where there can be no second thread: no workers, or memory that cannot be shared. */
export function startThreadTimekeeper(): ThreadTimekeeper | undefined {
  const globals = globalThis as unknown as Globals
  const { process, crossOriginIsolated } = globals
  if (typeof SharedArrayBuffer === 'undefined' || crossOriginIsolated === false) return undefined
  const threads = process?.getBuiltinModule?.('node:worker_threads') as WorkerThreads | undefined
  const plan = new ArenaPlan()
  const region = reserveMachine(plan, 1)
  const { buffer, i32 } = Arena.create(plan)
  if (threads !== undefined && process?.hrtime !== undefined) {
    const here = performance.now()
    const [seconds, nanoseconds] = process.hrtime()
    const origin = seconds * 1e3 + nanoseconds / 1e6
    const boot: ThreadTimekeeperBoot = { buffer, region, origin }
    const worker = new threads.Worker(new URL('./node-timekeeper.ts', import.meta.url), {
      workerData: boot,
      name: 'heddle timekeeper',
      execArgv: [],
      stdin: false,
    })
    // Without it the schedule goes on with the clock.
    worker.on('error', () => {})
    worker.unref()
    return timekeeper(i32, region, -here, () => void worker.terminate())
  }
  if (globals.Worker === undefined) return undefined
  const here = performance.now()
  const origin = performance.timeOrigin + here
  const boot: ThreadTimekeeperBoot = { buffer, region, origin }
  const worker = new Worker(new URL('./web-timekeeper.ts', import.meta.url), {
    type: 'module',
    name: 'heddle timekeeper',
  })
  worker.postMessage(boot)
  return timekeeper(i32, region, -here, () => worker.terminate())
}

function timekeeper(
  i32: Int32Array<SharedArrayBuffer>,
  region: Region,
  shift: number,
  terminate: () => void,
): ThreadTimekeeper {
  const cpu = cpuRecord(region, 0)
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
      Atomics.store(i32, region.start + MachineRecord.shutdown, 1)
      wakeTimekeeper(i32, region)
      terminate()
    },
  }
}
