import { Arena } from '../arena/memory/arena.ts'
import { lockRank } from '../arena/sync/lockorder.ts'
import { breakLock, initLock, lockOwner, release } from '../arena/sync/spinlock.ts'
import { CPU_MAX, KernelThread } from '../arena/sync/thread.ts'
import { CpuRecord, cpuRecord } from '../machine/core/cpurecord.ts'
import type { CpuDeath } from '../machine/core/machine.ts'
import { NodeMachine } from '../machine/node/nodemachine.ts'
import { timekeeperWakeups } from '../machine/timekeeper/timekeeper.ts'
import {
  Board,
  CHURN,
  CHURNS,
  COUNT,
  COUNTS,
  DIE,
  heapOf,
  HOG,
  HOG_MS,
  PASS,
  PAYLOADS,
  PING,
  PINGS,
  selftestLayout,
  SLICE_MS,
  STREAM,
  VALUES,
} from './selftest-layout.ts'
import { type Colour, paint as paintFor, terminalOf } from './terminal.ts'

const terminal = terminalOf(process.stdout)
const paint = (colour: Colour, text: string): string => paintFor(terminal, colour, text)

interface Seen {
  readonly ok: boolean
  readonly what: string
  readonly saw: string
}

/** A phase takes less than a second, and a few seconds on a busy machine. */
const HANGS_MS = 60_000

/** Boots two real CPUs, runs selftest-program.ts on them, and prints the results. Returns an exit code. */
export async function selftest(json: boolean = false): Promise<number> {
  const print = (text: string): void => {
    if (!json) console.log(text)
  }
  const layout = selftestLayout()
  const arena = Arena.create(layout.plan, { debug: true })
  const { i32 } = arena
  const { board, machine: region, slab } = layout
  const heap = heapOf(arena, layout)
  initLock(i32, board + Board.lock, lockRank('unranked'))
  slab.initialize(i32)
  heap.initialize()
  const main = new KernelThread(arena, CPU_MAX)
  const machine = new NodeMachine({
    arena,
    region,
    program: new URL('./selftest-program.ts', import.meta.url),
  })
  let died: (death: CpuDeath) => void = () => undefined
  machine.onDeath(death => died(death))

  const started = performance.now()
  await Promise.all([machine.start(0), machine.start(1)])
  const bootMs = performance.now() - started
  print(
    `${paint('bold', 'heddle')}  two CPUs on two threads, one arena of ${Math.round(arena.buffer.byteLength / 1024)} KiB`,
  )
  print(paint('dim', `        booted in ${bootMs.toFixed(0)} ms\n`))

  const seen: Seen[] = []
  const report = (ok: boolean, what: string, saw: string): void => {
    seen.push({ ok, what, saw })
    print(`  ${ok ? paint('green', '✓') : paint('red', '✗')} ${what.padEnd(52)} ${paint('dim', saw)}`)
  }
  const phase = async (number: number): Promise<number> => {
    Atomics.store(i32, board + Board.finished, 0)
    const start = performance.now()
    Atomics.store(i32, board + Board.phase, number)
    machine.kick(0)
    machine.kick(1)
    for (let finished = 0; finished < 2; finished = Atomics.load(i32, board + Board.finished)) {
      const waiting = Atomics.waitAsync(i32, board + Board.finished, finished, HANGS_MS)
      if (waiting.async && (await waiting.value) === 'timed-out')
        throw new Error(
          `phase ${number} of the self-test has not ended in ${HANGS_MS / 1000} s; please report it`,
        )
    }
    return performance.now() - start
  }

  let ms = await phase(COUNT)
  report(
    i32[board + Board.counter] === 2 * COUNTS,
    'spin lock: both count, nothing is lost',
    `${i32[board + Board.counter].toLocaleString('en')} under one lock, ${((ms * 1e6) / (2 * COUNTS)).toFixed(0)} ns each`,
  )
  ms = await phase(STREAM)
  let expected = 0
  for (let value = 1; value <= VALUES; value++) expected = (expected + Math.imul(value, value)) | 0
  report(
    i32[board + Board.checksum + 1] === expected,
    'ring: one sends, the other receives, in order',
    `${VALUES.toLocaleString('en')} values, ${((ms * 1e6) / VALUES).toFixed(0)} ns each`,
  )
  ms = await phase(CHURN)
  report(
    slab.count(i32) === 0 && i32[board + Board.checksum] + i32[board + Board.checksum + 1] === 0,
    'slab: both allocate and free, no lock',
    `${(2 * CHURNS).toLocaleString('en')} records, ${((ms * 1e6) / (2 * CHURNS)).toFixed(0)} ns each, none left over`,
  )
  ms = await phase(PASS)
  heap.verify(main)
  report(
    heap.usedBlocks() === 0 && i32[board + Board.checksum + 1] === 0,
    'payload heap: allocated on one, freed on the other',
    `${PAYLOADS.toLocaleString('en')} payloads, ${((ms * 1e3) / PAYLOADS).toFixed(1)} µs each, no leak`,
  )
  ms = await phase(PING)
  const kicks = [0, 1].map(id => Atomics.load(i32, cpuRecord(region, id) + CpuRecord.kicks))
  report(
    i32[board + Board.turn] === 2 * PINGS,
    'halt and kick: each sleeps until the other wakes it',
    `${(2 * PINGS).toLocaleString('en')} turns, ${((ms * 1e3) / (2 * PINGS)).toFixed(1)} µs each, ${(kicks[0] + kicks[1]).toLocaleString('en')} had to wake a thread`,
  )
  const idleWakeups = timekeeperWakeups(i32, region)
  await phase(HOG)
  const slices = [i32[board + Board.seen], i32[board + Board.seen + 1]]
  report(
    slices[0] > 0 && slices[1] > 0,
    `timekeeper: ${SLICE_MS} ms slices for two busy CPUs`,
    `${slices.join(' and ')} slices in ${HOG_MS} ms; ${idleWakeups} wakeups before, without an armed slice`,
  )
  const death = new Promise<CpuDeath>(resolve => {
    died = resolve
  })
  Atomics.store(i32, board + Board.phase, DIE)
  machine.kick(0)
  machine.kick(1)
  const { cpu, reason } = await death
  const held = lockOwner(i32, board + Board.lock) === cpu
  const broken = breakLock(main, board + Board.lock, cpu)
  release(main, board + Board.lock)
  machine.recovered(cpu)
  await machine.start(cpu)
  report(
    held && broken && machine.isActive(cpu),
    'death: a CPU throws while it holds a lock',
    `noticed (${reason}), its lock broken, a new CPU ${cpu} took its place`,
  )
  await machine.close()
  const failures = seen.filter(({ ok }) => !ok).length
  print(failures === 0 ? `\n  ${paint('green', 'all good')}` : `\n  ${paint('red', `${failures} failed`)}`)
  const arenaBytes = arena.buffer.byteLength
  if (json) console.log(JSON.stringify({ ok: failures === 0, arenaBytes, bootMs, checks: seen }))
  return failures === 0 ? 0 : 1
}
