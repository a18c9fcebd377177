import { Arena, ArenaPlan } from '../../src/arena/memory/arena.ts'
import { assert } from '../../src/arena/assert.ts'
import { lockRank } from '../../src/arena/sync/lockorder.ts'
import { acquire, breakLock, initLock, Lock, release } from '../../src/arena/sync/spinlock.ts'
import { KernelThread } from '../../src/arena/sync/thread.ts'
import type { Setup } from '../../src/checker/check.ts'
import {
  CPU_OFFLINE,
  CPU_ONLINE,
  CPU_STARTING,
  CpuRecord,
  cpuRecord,
  reserveMachine,
} from '../../src/machine/core/cpurecord.ts'
import { awaitRescues, beginRescue, endRescue, isKnownDead } from '../../src/machine/core/deaths.ts'

/** Steps of the protocol of deaths.ts that a broken variant leaves out. */
export interface Broken {
  /** Without (D). */
  readonly startsAtOnce?: boolean
  /** (B) before (A). */
  readonly looksFirst?: boolean
  /** Without (C): the record keeps the life of the dead CPU. */
  readonly keepsLife?: boolean
  /** The state is not checked. */
  readonly forgetsState?: boolean
}

/** The records of two CPUs and a lock. */
class TwoCpus {
  readonly i32: Int32Array
  readonly lock: number
  readonly machine: ReturnType<typeof reserveMachine>
  readonly record: number
  /** CPU 0, CPU 1 in its first and its second life, the booting thread. */
  readonly threads: readonly KernelThread[]
  private readonly inside: number

  constructor() {
    const plan = new ArenaPlan()
    this.machine = reserveMachine(plan, 2)
    this.lock = plan.reserve('lock', Lock.words).start
    this.inside = plan.reserve('inside', 1).start
    const arena = Arena.create(plan)
    this.i32 = arena.i32
    initLock(this.i32, this.lock, lockRank('unranked'))
    this.threads = [0, 1, 2].map(id => new KernelThread(arena, id, true, 0))
    this.record = cpuRecord(this.machine, 1)
    this.set('life', 1)
    this.set('state', CPU_ONLINE)
  }

  set(word: 'life' | 'state' | 'gone', value: number): void {
    Atomics.store(this.i32, this.record + CpuRecord[word], value)
  }

  /** Takes the lock for a moment, and asserts that no other thread has it. */
  enter(thread: KernelThread): void {
    acquire(thread, this.lock)
    this.stay()
    release(thread, this.lock)
  }

  stay(): void {
    const { i32, inside } = this
    assert(Atomics.add(i32, inside, 1) === 0, 'one thread at a time has the lock')
    Atomics.sub(i32, inside, 1)
  }

  /** One attempt of CPU 0 to break a lock that CPU 1 seemed to hold. */
  rescue({ looksFirst, forgetsState }: Broken): void {
    const { i32, machine, lock, threads } = this
    const own = cpuRecord(machine, 0)
    const isDead = (): boolean => {
      if (isKnownDead(i32, machine, 1)) return true
      const life = Atomics.load(i32, this.record + CpuRecord.life)
      return forgetsState === true && life !== 0 && Atomics.load(i32, this.record + CpuRecord.gone) === life
    }
    const seen = looksFirst === true && isDead()
    beginRescue(i32, own)
    if ((looksFirst === true ? seen : isDead()) && breakLock(threads[0], lock, 1)) {
      this.stay()
      release(threads[0], lock)
    }
    endRescue(i32, own)
  }

  /** CPU 1 starts again, as `start` of the machine does, and takes the lock. */
  startAgain(): void {
    this.set('state', CPU_STARTING)
    this.set('life', 2)
    this.set('state', CPU_ONLINE)
    this.enter(this.threads[1])
  }
}

/**
 * CPU 1 is dead and holds a lock that CPU 0 wants. The booting thread recovers and restarts it at the same
 * time.
 */
export function rescuedAsItStarts(broken: Broken = {}): Setup {
  return () => {
    const cpus = new TwoCpus()
    const { i32, lock, machine, threads } = cpus
    acquire(threads[1], lock)
    cpus.set('gone', 1)
    return {
      threads: {
        cpu0: () => cpus.rescue(broken),
        booting() {
          if (breakLock(threads[2], lock, 1)) release(threads[2], lock)
          cpus.set('state', CPU_OFFLINE)
          if (broken.keepsLife !== true) cpus.set('life', 0)
          if (broken.startsAtOnce !== true) awaitRescues(threads[2], machine, () => false)
          cpus.startAgain()
        },
      },
      final: () => assert(i32[lock + Lock.word] === 0, 'no thread holds the lock at the end'),
    }
  }
}

/** CPU 1 ends its program and starts again. A thread detects its end and reports it late. */
export function endsAndStarts(broken: Broken = {}): Setup {
  return () => {
    const cpus = new TwoCpus()
    const { i32, lock } = cpus
    const ended = new Int32Array(new SharedArrayBuffer(4))
    return {
      threads: {
        cpu0: () => cpus.rescue(broken),
        watcher() {
          Atomics.wait(ended, 0, 0)
          cpus.set('gone', 1)
        },
        cpu1() {
          cpus.set('state', CPU_OFFLINE)
          Atomics.store(ended, 0, 1)
          Atomics.notify(ended, 0)
          cpus.set('life', 0)
          cpus.startAgain()
        },
      },
      final: () => assert(i32[lock + Lock.word] === 0, 'no thread holds the lock at the end'),
    }
  }
}
