/**
 * The cost of the same operations in C, where `cc` is installed, and in Go, where `go` is: locks, threads and
 * wakeups of the operating system.
 */
import { Schedule } from '../src/coroutine/schedule/schedule.ts'
import { SWITCH_YIELDS } from '../src/sched/core/switch.ts'
import { Channel } from '../src/sync/channel/channel.ts'
import { Kernel } from '../src/kernel/boot/kernel.ts'
import type { ModuleView } from '../src/kernel/spawn/modules.ts'
import { compare, type Row, timed } from './harness.ts'
import { NativeProgram } from './native/program.ts'
import { fx, piPairs, plainPairs, robustPairs, view } from './pi/pairs.ts'
import { type Body, Rig } from './sched/rig.ts'

export const omitted: string[] = []

const PAIRS = 300_000
const YIELDS = 200_000
const MESSAGES = 50_000
const SPAWNS = 2_000

/** The word after the mutexes: no thread waits there. */
const word = fx.word(view, 60)

function mismatches(turns: number): void {
  for (let i = 0; i < turns; i++) fx.waitSync(word, 1)
}

function wakesOfNobody(turns: number): void {
  for (let i = 0; i < turns; i++) fx.wake(word, 1)
}

function* yielding(turns: number): Body {
  for (let turn = 0; turn < turns; turn++) yield SWITCH_YIELDS
}

const rig = new Rig(16)

/** Two tasks on one CPU that yield to each other. */
function yields(turns: number): void {
  rig.spawn(yielding(turns / 2))
  rig.spawn(yielding(turns / 2))
  rig.run()
}

const schedule = new Schedule()

async function messages(capacity: number): Promise<number> {
  const channel = new Channel<number>(capacity)
  const start = performance.now()
  await Promise.all([
    schedule.run(function* () {
      for (let i = 0; i < MESSAGES; i++) yield* channel.send(i)
    }),
    schedule.run(function* () {
      for (let i = 0; i < MESSAGES; i++) yield* channel.receive()
    }),
  ])
  return ((performance.now() - start) * 1e6) / MESSAGES
}

type Work = ModuleView<typeof import('./kernel/work.ts')>

async function spawnsInTurn(kernel: Kernel, work: Work): Promise<number> {
  const start = performance.now()
  for (let i = 0; i < SPAWNS; i++) await kernel.spawn(work.add, [i, 1])
  return ((performance.now() - start) * 1e6) / SPAWNS
}

async function spawnsTogether(kernel: Kernel, work: Work): Promise<number> {
  const start = performance.now()
  const tasks = Array.from({ length: SPAWNS }, (_, i) => kernel.spawn(work.add, [i, 1]))
  await Promise.all(tasks)
  return ((performance.now() - start) * 1e6) / SPAWNS
}

async function* againstC(c: NativeProgram, kernel: Kernel, work: Work): AsyncIterable<Row> {
  const pairs = [
    ['mutex', 'pthread_mutex', plainPairs],
    ['mutex-pi', 'pthread_mutex with PRIO_INHERIT', piPairs],
    ['mutex-robust', 'pthread_mutex, robust', robustPairs],
    ['futex-wait-mismatch', 'futex(2) in C', mismatches],
    ['futex-wake-none', 'futex(2) in C', wakesOfNobody],
  ] as const
  for (const [name, against, loop] of pairs) {
    yield await compare({
      row: `native/${name}`,
      against,
      ours: () => timed(PAIRS, loop),
      base: () => c.ask(name, PAIRS),
    })
  }
  yield await compare({
    row: 'native/yield',
    against: 'sched_yield of two threads on a core',
    ours: () => timed(YIELDS, yields),
    base: () => c.ask('yield', YIELDS / 4),
  })
  yield await compare({
    row: 'native/spawn-join',
    against: 'pthread_create and pthread_join',
    ours: () => spawnsInTurn(kernel, work),
    base: () => c.ask('spawn-join', SPAWNS),
  })
}

async function* againstGo(go: NativeProgram, kernel: Kernel, work: Work): AsyncIterable<Row> {
  yield await compare({
    row: 'native/go-yield',
    against: 'two goroutines and Gosched',
    ours: () => timed(YIELDS, yields),
    base: () => go.ask('yield', YIELDS),
  })
  yield await compare({
    row: 'native/go-spawn',
    against: 'goroutines and a WaitGroup',
    ours: () => spawnsTogether(kernel, work),
    base: () => go.ask('spawn', SPAWNS * 20),
  })
  yield await compare({
    row: 'native/go-mutex',
    against: "Go's Mutex",
    ours: () => timed(PAIRS, plainPairs),
    base: () => go.ask('mutex', PAIRS),
  })
  for (const [name, capacity] of [
    ['channel', 0],
    ['channel-buffered', 1024],
  ] as const) {
    yield await compare({
      row: `native/go-${name}`,
      against: "Go's channel",
      ours: () => messages(capacity),
      base: () => go.ask(name, MESSAGES * 10),
    })
  }
}

export async function* rows(): AsyncIterable<Row> {
  const here = (file: string): string => new URL(`./native/${file}`, import.meta.url).pathname
  const c = NativeProgram.build('cc', out => ['-O2', '-pthread', '-o', out, here('native.c')])
  const go = NativeProgram.build('go', out => ['build', '-o', out, here('native.go')])
  if (c === null) omitted.push('C: no `cc` here that builds bench/native/native.c')
  if (go === null) omitted.push('Go: `go` is not installed')
  if (c === null && go === null) return
  for (let round = 0; round < 3; round++) for (const loop of [plainPairs, piPairs, robustPairs]) loop(PAIRS)
  const kernel = await Kernel.boot({ cpus: 2 })
  const work = await kernel.import<typeof import('./kernel/work.ts')>(
    new URL('./kernel/work.ts', import.meta.url),
  )
  try {
    if (c !== null) yield* againstC(c, kernel, work)
    if (go !== null) yield* againstGo(go, kernel, work)
  } finally {
    c?.close()
    go?.close()
    await kernel.close()
    schedule.exit()
  }
}
