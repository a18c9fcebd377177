/**
 * Loaded before a program that `heddle run` runs: installs the loader, and applies the options of the command
 * to each kernel.
 */
import { appendFileSync } from 'node:fs'
import '../compiler/loading/register.ts'
import { onBoot } from '../kernel/boot/hooks.ts'
import { type PolicyReport, setRunDefaults } from '../kernel/boot/rundefaults.ts'
import { VirtualTimers } from '../kernel/boot/virtualtimers.ts'
import { traceFile } from '../trace/node-tracefile.ts'
import { Recording } from '../trace/recording.ts'
import { SimStepper } from './simstepper.ts'
import { shareRecording } from '../trace/sharedrecording.ts'

/** The options of the command, as the process of the program receives them. */
export interface RunRequest {
  readonly cpus?: number
  readonly slice?: number
  readonly trace?: string
  /** Events are recorded from the boot on, for the page. */
  readonly view?: boolean
  readonly sim?: { readonly seed: number }
  /** The file for the report, one JSON object a line; without it the report is text on standard error. */
  readonly report?: string
}

/** One line of a report. */
export type RunReport = PolicyReport | { readonly trace: string; readonly lostEvents: number }

const { HEDDLE_RUN } = process.env
// CPUs load this module too; there the variable is deleted already.
if (HEDDLE_RUN !== undefined) {
  delete process.env.HEDDLE_RUN
  prepare(JSON.parse(HEDDLE_RUN) as RunRequest)
}

function prepare({ cpus, slice, sim, trace, report, view }: RunRequest): void {
  const timers = sim && new VirtualTimers(sim.seed, call => void setImmediate(call))
  setRunDefaults({
    options: {
      ...(cpus !== undefined && { cpus }),
      ...(slice !== undefined && { slice }),
      ...(sim && { machine: 'simulated', seed: sim.seed, cpus: cpus ?? 2 }),
    },
    ...(timers && { timers }),
    ...(sim && view && { stepper: new SimStepper(sim.seed) }),
    ...(report !== undefined && { report: (about: RunReport) => writeReport(report, about) }),
  })
  timers?.install(globalThis as never)
  if (trace !== undefined) traceKernels(trace, report)
  if (view && !sim) onBoot(kernel => shareRecording(kernel))
}

function writeReport(file: string, report: RunReport): void {
  appendFileSync(file, `${JSON.stringify(report)}\n`)
}

/** The first kernel's trace goes into the named file, others beside it: out.pftrace, out.2.pftrace. */
function traceKernels(path: string, report: string | undefined): void {
  const open = new Map<Recording, string>()
  let kernels = 0
  const stop = (recording: Recording, trace: string): void => {
    recording.stop()
    open.delete(recording)
    const { lost } = recording
    if (report !== undefined) writeReport(report, { trace, lostEvents: lost })
    else if (lost > 0) process.stderr.write(`heddle run: ${lost} events did not fit into the trace\n`)
  }
  const stopAll = (): void => {
    for (const [recording, trace] of open) stop(recording, trace)
  }
  onBoot(view => {
    const trace = numbered(path, ++kernels)
    const recording = new Recording(view, traceFile(trace), {})
    open.set(recording, trace)
    return () => {
      if (open.has(recording)) stop(recording, trace)
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
