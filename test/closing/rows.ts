import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MessageChannel, type Worker } from 'node:worker_threads'
import { acquire } from '../../src/arena/sync/spinlock.ts'
import {
  ArenaFullError,
  Barrier,
  Channel,
  Condition,
  Event,
  futex,
  Kernel,
  type KernelOptions,
  Latch,
  type ModuleView,
  Mutex,
  Once,
  RwLock,
  Semaphore,
  SharedQueue,
  type Task,
} from '../../src/index.ts'
import { stopThread } from '../../testing/machine/fixtures/stopthread.ts'
import type { NodeMachine } from '../../src/machine/node/nodemachine.ts'
import { lockNames } from '../../testing/kernel/fixtures/rescuework.ts'
import { until } from '../../testing/kernel/fixtures/ending.ts'
import { waysToWait } from './work.ts'

/**
 * Every way to keep a kernel from closing. Each is one row of the table in docs/recovery.md. `program.ts`
 * runs all of them in one process, which exits by itself when the last kernel has closed.
 */
export interface Row {
  readonly way: string
  readonly options?: KernelOptions
  /** Breaks the kernel. May return a function that closes it, if `close({ deadline })` is not enough. */
  readonly breaks: (at: Broken) => unknown
  readonly close?: (at: Broken) => Promise<unknown>
  /** Called after the close. */
  readonly after?: (at: Broken) => unknown
  /** How the tasks may end, if not killed or lost. */
  readonly ends?: RegExp
  /** The codes of the errors that the kernel reports. */
  readonly told?: readonly string[]
}

type Work = ModuleView<typeof import('./work.ts')>
type Rescue = ModuleView<typeof import('../../testing/kernel/fixtures/rescuework.ts')>

export const DEADLINE_MS = 1

/** What a row can use. */
export class Broken {
  readonly words: Int32Array = new Int32Array(new SharedArrayBuffer(32))
  readonly tasks: Task<unknown>[] = []
  readonly folder: string = mkdtempSync(join(tmpdir(), 'heddle-closing-'))
  readonly kernel: Kernel
  readonly work: Work
  thread: Worker | undefined

  constructor(kernel: Kernel, work: Work) {
    this.kernel = kernel
    this.work = work
  }

  get file(): string {
    return join(this.folder, 'marker')
  }

  /** Registers the task: it must have an outcome when the kernel has closed. */
  add(...tasks: Task<any>[]): void {
    this.tasks.push(...tasks)
    for (const task of tasks) task.then(undefined, () => undefined)
  }

  begun(count: number): Promise<void> {
    return until(`${count} tasks have begun`, () => Atomics.load(this.words, 0) >= count)
  }

  close(): Promise<void> {
    return this.kernel.close({ deadline: DEADLINE_MS })
  }

  dispose(): void {
    rmSync(this.folder, { recursive: true })
  }
}

const STUCK = ['plainLoop', 'microtasks', 'atomicsWait', 'regularExpression'] as const

export const rows: readonly Row[] = [
  {
    way: 'CPUs that are stuck: in a plain loop, in a chain of microtasks, in `Atomics.wait`, in a regular expression',
    options: { cpus: STUCK.length },
    breaks: async at => {
      STUCK.forEach((name, cpu) => {
        at.add(at.kernel.spawn(at.work[name], [at.words], { affinity: [cpu] }))
      })
      await at.begun(STUCK.length)
    },
  },
  {
    way: 'a CPU in a call of the operating system that does not return',
    options: { cpus: 1 },
    breaks: async at => {
      at.add(at.kernel.spawn(at.work.nativeCall, [at.words, at.file]))
      at.thread = machineOf(at).threadOf(0)
      await at.begun(1)
    },
    // Now the call returns and the thread ends; otherwise the process could not end.
    after: async at => {
      writeFileSync(at.file, '')
      await until('its thread is gone', () => at.thread?.threadId === -1)
    },
    told: ['ERR_HEDDLE_THREAD_LEFT'],
  },
  {
    way: 'a CPU that a debugger has stopped',
    options: { cpus: 1 },
    breaks: async at => {
      at.add(at.kernel.spawn(at.work.ignoresKills, [at.words]))
      await at.begun(1)
      await stopThread(machineOf(at).threadOf(0)!)
    },
  },
  {
    way: 'tasks that ignore kills: one catches each of them, the `finally` of another never ends',
    options: { cpus: 1 },
    breaks: async at => {
      at.add(at.kernel.spawn(at.work.ignoresKills, [at.words]))
      at.add(at.kernel.spawn(at.work.endlessFinally, [at.words]))
      await at.begun(2)
    },
  },
  {
    way: 'restartable tasks that are evicted for ever',
    options: { cpus: 1, watchdog: { limit: 5, evict: true } },
    breaks: async at => {
      for (let n = 0; n < 3; n++)
        at.add(at.kernel.spawn(at.work.plainLoop, [at.words], { restartable: true }))
      await at.begun(2)
    },
  },
  {
    way: 'CPUs that die with each kind of lock of the kernel',
    options: { cpus: lockNames.length + 1 },
    breaks: async at => {
      const url = new URL('../../testing/kernel/fixtures/rescuework.ts', import.meta.url)
      const rescue = (await at.kernel.import<Rescue>(url)) as Rescue
      at.add(at.kernel.spawn(rescue.works, [at.words], { affinity: [0] }))
      await until('it works', () => at.words[0] > 2)
      const tasks = lockNames.map((name, n) =>
        at.kernel.spawn(rescue.diesWith, [name, at.words], { affinity: [n + 1] }),
      )
      at.add(...tasks)
    },
  },
  {
    way: 'CPUs that die on every start',
    options: { cpus: 1 },
    breaks: async at => {
      const url = new URL('../../testing/kernel/fixtures/diesloading.ts', import.meta.url)
      url.searchParams.set('marker', at.file)
      const dying = await at.kernel.import<typeof import('../../testing/kernel/fixtures/diesloading.ts')>(url)
      writeFileSync(at.file, '')
      at.add(at.kernel.spawn(dying.exits, [7]), at.kernel.spawn(dying.echo, [1]))
      await until('one is lost', () => at.kernel.summary.failed > 0)
    },
  },
  {
    way: 'a timekeeper that has died',
    options: { cpus: 1 },
    breaks: async at => {
      await machineOf(at)['timekeeper'].terminate()
      at.add(at.kernel.spawn(at.work.ignoresKills, [at.words]), at.kernel.spawn(at.work.rests, [at.words]))
      await at.begun(2)
    },
  },
  {
    way: 'a booting thread that left a call of the kernel with a lock',
    options: { cpus: 1 },
    breaks: async at => {
      at.add(at.kernel.spawn(at.work.rests, [at.words]))
      await at.begun(1)
      const { view } = at.kernel['booted']
      acquire(view.thread, view.s.sleepLock)
      try {
        at.kernel.spawn(at.work.exits)
      } catch {
        // The promise of the end of the kernel.
      }
    },
    ends: /KernelFaultError/,
    told: ['ERR_HEDDLE_KERNEL_FAULT'],
  },
  {
    way: 'tasks that spawn for ever, until the arena is full',
    options: { cpus: 2, tasks: 200, heap: 1 << 20 },
    breaks: async at => {
      at.add(at.kernel.spawn(at.work.multiplies, [at.words]))
      await at.begun(100)
    },
  },
  {
    way: 'a payload heap that is full, with no room for the reason of a kill',
    options: { cpus: 1, heap: 1 << 18 },
    breaks: async at => {
      at.add(at.kernel.spawn(at.work.rests, [at.words]))
      await at.begun(1)
      try {
        for (let length = 1 << 16; length > 8; ) {
          try {
            at.add(at.kernel.spawn(at.work.waits, [at.words, 17, 'x'.repeat(length)] as never))
          } catch (error) {
            if (!(error instanceof ArenaFullError)) throw error
            length >>= 1
          }
        }
      } catch (error) {
        if (!(error instanceof ArenaFullError)) throw error
      }
    },
    close: at => at.kernel.close({ abort: new Error('y'.repeat(1 << 16)) }),
  },
  {
    way: 'a task in each kind of wait',
    options: { cpus: 2 },
    breaks: async at => {
      const mutexes = [
        new Mutex(),
        new Mutex({ protocol: 'inherit' }),
        new Mutex({ protocol: 'handoff' }),
        new Mutex({ robust: true }),
      ]
      const all = {
        mutexes,
        rwlock: new RwLock(),
        semaphore: new Semaphore(0),
        channel: new Channel<number>(0),
        condition: new Condition(),
        guard: new Mutex(),
        barrier: new Barrier(99),
        latch: new Latch(1),
        event: new Event(),
        once: new Once(),
        queue: new SharedQueue({ capacity: 2 }),
      }
      for (const mutex of mutexes) mutex.lockSync()
      all.rwlock.lockWriteSync()
      futex.lockPiSync(at.words, 5)
      void all.once.runAsync(() => new Promise(() => undefined))
      for (let way = 0; way < waysToWait; way++)
        at.add(at.kernel.spawn(at.work.waits, [at.words, way, all] as never, { name: `waits ${way}` }))
      await at.begun(waysToWait)
    },
  },
  {
    way: 'tasks that are stopped, tasks that wait to be admitted, and a queue of tasks behind a hog',
    options: { cpus: 1, tasksPerCpu: 3 },
    breaks: async at => {
      const stopped = at.kernel.spawn(at.work.rests, [at.words])
      at.add(stopped)
      await at.begun(1)
      stopped.stop()
      at.add(at.kernel.spawn(at.work.plainLoop, [at.words]))
      await at.begun(2)
      for (let n = 0; n < 20; n++) at.add(at.kernel.spawn(at.work.rests, [at.words]))
    },
  },
  {
    way: 'two tasks that wait for each other’s lock, with `debug: true`',
    options: { cpus: 2, debug: true },
    breaks: async at => {
      const [one, other] = [new Mutex(), new Mutex()]
      at.kernel.on('deadlock', () => undefined)
      at.add(at.kernel.spawn(at.work.locksBoth, [at.words, one, other] as never))
      at.add(at.kernel.spawn(at.work.locksBoth, [at.words, other, one] as never))
      await at.begun(2)
    },
    ends: /TaskKilledError|CpuLostError|SyncError|returned/,
  },
  {
    way: 'a module whose import never ends: it waits, or it computes',
    options: { cpus: 1 },
    breaks: at => {
      for (const how of ['waits', 'computes']) {
        const url = new URL(`./neverloads.ts?how=${how}`, import.meta.url)
        at.kernel.import(url).catch(() => undefined)
      }
    },
  },
  {
    way: 'a message port and a timer that keep the event loop of a CPU',
    options: { cpus: 1, eventLoop: 'always' },
    breaks: async at => {
      const { port1, port2 } = new MessageChannel()
      port1.unref()
      at.add(at.kernel.spawn(at.work.listens, [at.words, port2] as never, { transfer: [port2] }))
      await at.begun(1)
    },
  },
  {
    way: 'listeners that throw',
    options: { cpus: 2 },
    breaks: async at => {
      for (const event of ['death', 'restart', 'failure', 'error', 'online'] as const) {
        at.kernel.on(event, () => {
          throw new Error('a listener')
        })
      }
      at.add(at.kernel.spawn(at.work.exits, [], { affinity: [0] }))
      await until('one is lost', () => at.kernel.summary.failed > 0)
      await until('another CPU takes the place of the dead one', () => at.kernel.online === 2)
      at.add(at.kernel.spawn(at.work.rests, [at.words]))
      await at.begun(1)
    },
  },
  {
    way: '`close` without a deadline, and then with one',
    options: { cpus: 1 },
    breaks: async at => {
      at.add(at.kernel.spawn(at.work.rests, [at.words]))
      await at.begun(1)
    },
    close: async at => {
      const first = at.kernel.close()
      await Promise.all([first, at.kernel.close({ deadline: 1e9 }), at.close(), at.kernel.close()])
    },
  },
  {
    way: '`close` from a listener, as a CPU dies',
    options: { cpus: 1 },
    breaks: async at => {
      at.add(at.kernel.spawn(at.work.rests, [at.words]), at.kernel.spawn(at.work.exits))
      let closing: Promise<void> | undefined
      at.kernel.on('death', () => (closing = at.close()))
      await until('it closes', () => closing !== undefined)
      await closing
    },
  },
  {
    way: '`close` while CPUs start, and while they retire',
    options: { cpus: { min: 0, max: 3, idle: 1 } },
    breaks: async at => {
      at.add(at.kernel.spawn(at.work.rests, [at.words]))
      await at.begun(1)
      for (let n = 0; n < 8; n++) at.add(at.kernel.spawn(at.work.exits, [], { restartable: true }))
    },
  },
  {
    way: 'a simulated machine whose tasks never end',
    options: { cpus: 2, machine: 'simulated' },
    breaks: at => {
      at.add(at.kernel.spawn(at.work.ignoresKills, [at.words]))
    },
  },
]

const machineOf = (at: Broken): NodeMachine => at.kernel['booted'].machine as unknown as NodeMachine
