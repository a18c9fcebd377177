/** In the process of a simulated program: stops the machine between steps, as the page asks. */
import { onBoot } from '../kernel/boot/hooks.ts'
import type { Stepper } from '../kernel/boot/rundefaults.ts'
import type { KernelView } from '../kernel/boot/view.ts'
import type { SimulatedMachine } from '../machine/simulated/simulatedmachine.ts'
import { Entity } from '../sched/core/entity.ts'
import { RunQueue } from '../sched/core/runqueue.ts'
import { taskName } from '../sched/core/taskname.ts'
import { takeSnapshot } from '../trace/snapshot.ts'
import type { SimulatedRun, SimulationData, SimulationStep } from '../view/simulation.ts'

const RUNS_MAX = 600
/** Between two pictures of a machine that runs on, in real time. */
const PICTURE_NS = 100_000_000n

type Writable<T> = { -readonly [K in keyof T]: T[K] }

/**
 * The first kernel of the program waits for the requests of the parent process. Everything here is real time
 * and the real event loop; the program sees virtual time only, so a stop changes nothing for it.
 */
export class SimStepper implements Stepper {
  private readonly seed: number
  private view: KernelView | undefined
  private machine: SimulatedMachine | undefined
  /** What the machine does now; `pause`: nothing. */
  private mode: SimulationStep = 'pause'
  private resume: (() => void) | undefined
  private readonly runs: Writable<SimulatedRun>[] = []
  /** Per CPU: the stretch that is open. */
  private readonly open: (Writable<SimulatedRun> | undefined)[] = []
  /** Per CPU: the record of the running task; 0 when it idles. */
  private readonly current: number[] = []
  private readonly numbers = new Map<string, number>()
  /** Since the last request: a task began to run; a task left its CPU. */
  private switched = false
  private left = false
  private ticks = 0
  private lastPicture = 0n

  constructor(seed: number) {
    this.seed = seed
    onBoot(view => {
      if (this.view !== undefined) return undefined
      this.view = view
      return () => {
        this.mode = 'run'
        this.send('running')
      }
    })
    process.on('message', (kind: SimulationStep) => this.ask(kind))
    // A program that has ended must not wait for requests.
    process.channel?.unref()
    process.on('disconnect', () => process.exit(0))
  }

  async next(machine: SimulatedMachine): Promise<void> {
    // The boot is not stopped: its steps come before the first task.
    if (this.view === undefined || (this.machine !== undefined && this.machine !== machine)) return
    this.machine = machine
    if (this.mode !== 'pause') return
    this.send('paused')
    process.channel?.ref()
    await new Promise<void>(resolve => {
      this.resume = resolve
    })
    process.channel?.unref()
  }

  isOver(machine: SimulatedMachine): boolean {
    if (machine !== this.machine) return false
    this.look(machine)
    const { mode } = this
    const isDone =
      mode === 'step' ||
      (mode === 'switch' && this.switched) ||
      (mode === 'slice' && (this.left || machine.ticks > this.ticks))
    if (isDone) this.mode = 'pause'
    else if (mode === 'run' && process.hrtime.bigint() - this.lastPicture > PICTURE_NS) {
      this.send('running')
      // The driver turns the event loop, where a request to pause is heard.
      return true
    }
    return isDone || this.mode === 'pause'
  }

  private ask(kind: SimulationStep): void {
    this.mode = kind
    this.switched = false
    this.left = false
    this.ticks = this.machine?.ticks ?? 0
    this.resume?.()
    this.resume = undefined
  }

  /** Compares the running task of each CPU with the one before the step. */
  private look(machine: SimulatedMachine): void {
    const { s, i32 } = this.view!
    for (let cpu = 0; cpu < machine.cpus; cpu++) {
      const queue = s.queueOf(cpu)
      const current = Atomics.load(i32, queue + RunQueue.current)
      const task = current === 0 || current === i32[queue + RunQueue.idle] ? 0 : i32[current + Entity.task]
      const open = this.open[cpu]
      if ((this.current[cpu] ?? 0) === task) continue
      this.current[cpu] = task
      const now = machine.cpu(cpu).now()
      if (open !== undefined) {
        open.to = now
        open.ticked = machine.ticks > this.ticks
        this.left = true
      }
      this.open[cpu] = undefined
      if (task === 0) continue
      this.switched = true
      const name = taskName(s, task)
      const run = { cpu, task: this.numberOf(task, name), name, from: now, to: null, ticked: false }
      this.open[cpu] = run
      this.runs.push(run)
      if (this.runs.length > RUNS_MAX) this.runs.shift()
    }
  }

  /** A small number for each task. A record is used again for another task. */
  private numberOf(task: number, name: string): number {
    const key = `${task} ${name}`
    const known = this.numbers.get(key)
    if (known !== undefined) return known
    this.numbers.set(key, this.numbers.size)
    return this.numbers.size - 1
  }

  private send(state: SimulationData['state']): void {
    const { view, machine } = this
    if (view === undefined || machine === undefined || process.send === undefined) return
    this.lastPicture = process.hrtime.bigint()
    const { cpus, tasks } = takeSnapshot(view)
    const data: SimulationData = {
      seed: this.seed,
      state,
      steps: machine.steps,
      time: machine.now(),
      cpus: cpus.map(({ cpu, running, load, switches }) => ({
        cpu,
        clock: machine.cpu(cpu).now(),
        running,
        queued: Math.max(0, load - (running === null ? 0 : 1)),
        switches,
      })),
      tasks: tasks
        .slice(0, TASKS_MAX)
        .map(({ id, name, state: is, cpu, priority, runTime, waitTime, waitsFor }) => ({
          id,
          name,
          state: is,
          cpu,
          priority,
          runTime,
          waitTime,
          waitsFor,
        })),
      runs: this.runs,
      exitCode: null,
    }
    process.send(data, undefined, {}, () => undefined)
  }
}

/** A page of more tasks would be no help. */
const TASKS_MAX = 200
