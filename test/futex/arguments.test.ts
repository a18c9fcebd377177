import { expect, test } from 'vitest'
import { Arena, ArenaPlan } from '../../src/arena/memory/arena.ts'
import { KernelThread } from '../../src/arena/sync/thread.ts'
import {
  FUTEX_PRIVATE_FLAG,
  FUTEX_WAKE_OP,
  type Timespec,
  type Uaddr,
} from '../../src/futex/operations/call.ts'
import { Futexes } from '../../src/futex/core/futexes.ts'
import { initializeFutexes, reserveFutexes } from '../../src/futex/core/layout.ts'
import { SeededRandom } from '../../src/machine/simulated/random.ts'
import { askLinux, buildLinuxFutex } from './linux.ts'
import { sizes } from './stage.ts'

/** A call, as linux-arguments.c takes it. */
interface Call {
  readonly op: number
  readonly value: number
  /** Null: `val2` in this position. */
  readonly timeout: Timespec | null
  readonly val2: number
  readonly offset: number
  readonly offset2: number
  readonly val3: number
  readonly words: readonly number[]
}

/** Replaced by the TID of the caller. */
const OWN = 0x1abcdef
const TID_MASK = 0x3fff_ffff
const WAITERS = 0x8000_0000
const OWNER_DIED = 0x4000_0000
/** Larger than any process id, and smaller than our TIDs. */
const NOBODY = 0x1fff_fff0

const isLock = (command: number): boolean => [6, 7, 8, 13].includes(command)
const hasTimeout = (command: number): boolean => [0, 6, 9, 11, 13].includes(command)

/** A call that ends by itself: each wait has a timeout that has passed or will pass soon. */
function randomCall(random: SeededRandom): Call {
  const pick = <T>(...choices: readonly T[]): T => choices[random.below(choices.length)]
  const command = pick(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 63)
  const op = command | pick(0, 0, 128, 128, 256, 384, 512)
  const plain = (): number => pick(0, 0, 1, 0xffff_ffff, 5, 0x7fff_ffff)
  const lock = (): number =>
    (pick(0, OWN, OWN, NOBODY) | pick(0, 0, WAITERS, OWNER_DIED, WAITERS | OWNER_DIED)) >>> 0
  const words = [plain(), plain(), plain()]
  if (isLock(command)) words[0] = lock()
  if (command === 11 || command === 12) words[1] = lock()
  const bad = pick({ sec: 0, nsec: 1e9 }, { sec: -1, nsec: 0 }, { sec: 0, nsec: -1 })
  const timeout = pick({ sec: 0, nsec: 0 }, { sec: 0, nsec: 0 }, { sec: 0, nsec: 1000 }, bad)
  // In private calls Linux does not check an address that it does not read: only shared ones are null.
  const nowhere = (op & FUTEX_PRIVATE_FLAG) === 0 ? [-1] : []
  const fields = [random.below(16) << 28, random.below(16) << 24]
  const [oparg, cmparg] = [pick(0, 1, 31, 32, 0xfff, 0x800), pick(0, 1, 5, 0xfff, 0x800)]
  return {
    op,
    value: pick(0, 0, 1, 1, -1, 5, 0x7fff_ffff),
    timeout: hasTimeout(command) ? timeout : null,
    val2: pick(0, 1, -1, 2, 0x7fff_ffff),
    offset: isLock(command) ? pick(0, 0, 0, 0, 1, 2, ...nowhere) : pick(0, 0, 0, 4, 1, 2, ...nowhere),
    offset2: pick(4, 4, 4, 4, 0, 5, 6, ...nowhere),
    val3: command === FUTEX_WAKE_OP ? fields[0] | fields[1] | (oparg << 12) | cmparg : pick(0, 0, 1, -1, 5),
    words,
  }
}

function lineOf({ op, value, timeout, val2, offset, offset2, val3, words }: Call): string {
  const { sec, nsec } = timeout ?? { sec: -2, nsec: 0 }
  return [op, value, sec, nsec, val2, offset, offset2, val3, ...words].join(' ')
}

class Here {
  private readonly fx: Futexes
  private readonly view = new Uint32Array(new SharedArrayBuffer(4096))

  constructor() {
    const plan = new ArenaPlan()
    const layout = reserveFutexes(plan, sizes)
    const arena = Arena.create(plan)
    initializeFutexes(arena, layout)
    this.fx = new Futexes(new KernelThread(arena, 64), layout, { now: () => performance.now() })
    this.fx.map(this.view.buffer)
  }

  call({ op, value, timeout, val2, offset, offset2, val3, words }: Call): string {
    const { fx, view } = this
    const { tid } = fx.self
    const at = (byteOffset: number): Uaddr => (byteOffset < 0 ? null : { buffer: view.buffer, byteOffset })
    view.set(words.map(word => swap(word, OWN, tid)))
    const result = fx.futexSync(at(offset), op, value, timeout ?? val2, at(offset2), val3)
    return [result, ...Array.from(view.subarray(0, 3), word => swap(word, tid, OWN))].join(' ')
  }
}

function swap(word: number, from: number, to: number): number {
  return (word & TID_MASK) === from ? ((word & ~TID_MASK) | to) >>> 0 : word
}

const program = buildLinuxFutex('linux-arguments.c')

test.skipIf(program === undefined)(
  'calls with wrong arguments have the results of the kernel of this machine',
  () => {
    const seed = Date.now() % 1_000_000
    const random = new SeededRandom(seed)
    const calls = Array.from({ length: 3000 }, () => randomCall(random))
    const lines = calls.map(lineOf)
    const linux = askLinux(program as string, lines)
    const here = new Here()
    const answers = calls.map(call => here.call(call))
    const named = (all: readonly string[]): string[] => all.map((answer, at) => `${lines[at]} -> ${answer}`)
    expect(named(answers), `seed ${seed}`).toEqual(named(linux))
  },
)
