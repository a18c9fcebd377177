import { Arena, ArenaPlan } from '../../arena/memory/arena.ts'
import { KernelThread } from '../../arena/sync/thread.ts'
import { Futexes } from './futexes.ts'
import { type FutexLayout, type FutexSizes, initializeFutexes, reserveFutexes } from './layout.ts'
import { domainTag } from './domainwords.ts'
import { claimThreadId, releaseThreadId } from './threads.ts'

/**
 * A domain: threads that can wait for one another. An arena with futexes, and one address space for all. A
 * kernel's arena is one; this one is for programs that have locks and no kernel.
 */
export interface DomainHandle {
  readonly buffer: SharedArrayBuffer
  readonly sizes: FutexSizes
  readonly space: number
  /** Tells domains apart. */
  readonly tag: number
}

/** Small: what waits here are threads and promises, a few for each of at most 190 threads. */
const SIZES: FutexSizes = { waiters: 1 << 16, mappings: 1024, spaces: 4, buckets: 1024 }

export class Domain {
  readonly handle: DomainHandle
  readonly futexes: Futexes

  private constructor(arena: Arena, layout: FutexLayout, sizes: FutexSizes, space: number | undefined) {
    const id = claimThreadId(arena.i32, layout)
    const thread = new KernelThread(arena, id, mayBlock())
    this.futexes = new Futexes(thread, layout, {
      now: () => performance.now(),
      ...(space !== undefined && { space }),
    })
    this.futexes.context.detectsDeadlocks = true
    atExit(() => {
      this.futexes.leave()
      releaseThreadId(arena.i32, layout, id)
    })
    this.handle = {
      buffer: arena.buffer,
      sizes,
      space: this.futexes.space.handle,
      tag: domainTag(this.futexes.context),
    }
  }

  static create(sizes: FutexSizes = SIZES): Domain {
    const plan = new ArenaPlan()
    const layout = reserveFutexes(plan, sizes)
    const arena = Arena.create(plan)
    initializeFutexes(arena, layout)
    return new Domain(arena, layout, sizes, undefined)
  }

  static attach({ buffer, sizes, space }: DomainHandle): Domain {
    const layout = reserveFutexes(new ArenaPlan(), sizes)
    return new Domain(Arena.attach(buffer), layout, sizes, space)
  }
}

/** On a thread that may not block, `Atomics.wait` throws immediately, whatever its arguments. */
function mayBlock(): boolean {
  try {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 1, 0)
    return true
  } catch {
    return false
  }
}

/** Where the platform says so, a thread that ends gives back what it has of the domain. */
function atExit(leave: () => void): void {
  const { process } = globalThis as { process?: { once?(event: 'exit', listener: () => void): void } }
  process?.once?.('exit', leave)
}
