/** Loaded before a program that `heddle run` runs: puts the loader in place, and does to each kernel what was asked for. */
import '../compiler/register.ts'
import { onBoot } from '../task/hooks.ts'
import { setRunDefaults } from '../task/rundefaults.ts'
import { VirtualTimers } from '../task/virtualtimers.ts'
import { traceFile } from '../trace/node-tracefile.ts'
import { Recording } from '../trace/recording.ts'

/** What the command line asked for, on its way from one process to the other. */
export interface RunRequest {
  readonly cpus?: number
  readonly slice?: number
  readonly trace?: string
  readonly sim?: { readonly seed: number }
}

const { HEDDLE_RUN } = process.env
// CPUs are started with this module too, and have nothing to do here.
if (HEDDLE_RUN !== undefined) {
  delete process.env.HEDDLE_RUN
  prepare(JSON.parse(HEDDLE_RUN) as RunRequest)
}

function prepare({ cpus, slice, sim, trace }: RunRequest): void {
  const timers = sim && new VirtualTimers(sim.seed, call => void setImmediate(call))
  setRunDefaults({
    options: {
      ...(cpus !== undefined && { cpus }),
      ...(slice !== undefined && { slice }),
      ...(sim && { machine: 'simulated', seed: sim.seed, cpus: cpus ?? 2 }),
    },
    ...(timers && { timers }),
  })
  timers?.install(globalThis as never)
  if (trace !== undefined) traceKernels(trace)
}

/** The first kernel goes into the file that was named, others beside it: out.pftrace, out.2.pftrace. */
function traceKernels(path: string): void {
  const open = new Set<Recording>()
  let kernels = 0
  const stopAll = (): void => {
    for (const recording of open) recording.stop()
    open.clear()
  }
  onBoot(view => {
    const recording = new Recording(view, traceFile(numbered(path, ++kernels)), {})
    open.add(recording)
    return () => {
      recording.stop()
      open.delete(recording)
      if (recording.lost > 0)
        process.stderr.write(`heddle run: ${recording.lost} events did not fit into the trace\n`)
    }
  })
  process.on('exit', stopAll)
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => {
      stopAll()
      process.kill(process.pid, signal)
    })
  }
}

function numbered(path: string, kernel: number): string {
  return kernel === 1 ? path : path.replace(/(\.\w+)?$/, ending => `.${kernel}${ending}`)
}
