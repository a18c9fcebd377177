import { styleText } from 'node:util'
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

type Style = Parameters<typeof styleText>[0]

const paint = (style: Style, text: string): string =>
  process.stdout.isTTY && !process.env.NO_COLOR ? styleText(style, text) : text

interface Seen {
  readonly ok: boolean
  readonly what: string
  readonly saw: string
}

/** No phase takes a second, and on a machine that has much else to do not many. */
const HANGS_MS = 60_000

/**
 * Boots two real CPUs, has them do kernel work on shared memory, and prints what it saw. Returns an exit
 * code.
 */
export async function selftest(json: boolean = false): Promise<number> {
  const say = (text: string): void => {
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
  say(
    `${paint('bold', 'heddle')}  two CPUs on two threads, one arena of ${Math.round(arena.buffer.byteLength / 1024)} KiB`,
  )
  say(paint('dim', `        booted in ${bootMs.toFixed(0)} ms\n`))

  const seen: Seen[] = []
  const report = (ok: boolean, what: string, saw: string): void => {
    seen.push({ ok, what, saw })
    say(`  ${ok ? paint('green', '✓') : paint('red', '✗')} ${what.padEnd(52)} ${paint('dim', saw)}`)
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
        throw new Error('the self-test hangs; please report it')
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
    `${slices.join(' and ')} slices in ${HOG_MS} ms; ${idleWakeups} wakeups before, while nobody needed a tick`,
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
  say(failures === 0 ? `\n  ${paint('green', 'all good')}` : `\n  ${paint('red', `${failures} failed`)}`)
  const arenaBytes = arena.buffer.byteLength
  if (json) console.log(JSON.stringify({ ok: failures === 0, arenaBytes, bootMs, checks: seen }))
  return failures === 0 ? 0 : 1
}
