import { Worker } from 'node:worker_threads'
import { futex, type Kernel, type ModuleView } from '../../../src/index.ts'
import type { SeededRandom } from '../../../src/machine/simulated/random.ts'
import type { Wide } from './widework.ts'

type Work = ModuleView<typeof import('./lockwork.ts')>

const TIMED = { timeout: 10 }

/**
 * The actions of the booting thread in the lock chaos: maps, scopes, futexes, and a pool whose workers die
 * too.
 */
export class WideUse {
  private readonly kernel: Kernel
  private readonly work: Work
  private readonly random: SeededRandom
  private readonly wide: () => Wide
  private readonly fault: (error: unknown) => void

  constructor(
    kernel: Kernel,
    work: Work,
    random: SeededRandom,
    wide: () => Wide,
    fault: (error: unknown) => void,
  ) {
    this.kernel = kernel
    this.work = work
    this.random = random
    this.wide = wide
    this.fault = fault
  }

  async run(goesOn: () => boolean): Promise<void> {
    await Promise.all([
      this.again(goesOn, () => this.map()),
      this.again(goesOn, () => this.scope()),
      this.again(goesOn, () => this.futexes()),
      this.pool(goesOn),
    ])
  }

  private async again(goesOn: () => boolean, use: () => Promise<unknown>): Promise<void> {
    while (goesOn()) {
      try {
        await use()
      } catch (error) {
        this.fault(error)
      }
      await new Promise(resolve => setTimeout(resolve, 5))
    }
  }

  /** All tasks of a map are restartable: each item has its result, in order. */
  private async map(): Promise<void> {
    const items = Array.from({ length: 12 }, (_, n) => n % 4)
    const results: number[] = []
    for await (const result of this.kernel.map(this.work.member, items, { restartable: true }))
      results.push(result)
    if (String(results) !== String(items)) throw new Error(`a map gave ${results.join()}`)
  }

  private async scope(): Promise<void> {
    await this.kernel.scope(scope => {
      for (let n = 0; n < 3; n++) scope.spawn(this.work.member, [n])
      if (this.random.below(4) === 0) scope.cancel()
    })
  }

  private async futexes(): Promise<void> {
    const { words, large, seqlock, events, rwlock } = this.wide()
    switch (this.random.below(6)) {
      case 0:
        await futex.waitAsync(words, 0, Atomics.load(words, 0), TIMED)
        break
      case 1:
        futex.waitSync(large, 1, 0n, { timeout: 2 })
        break
      case 2: {
        const owner = await futex.lockPiAsync(words, 2, TIMED)
        if (owner !== null) futex.unlockPi(words, 2, owner)
        break
      }
      case 3:
        seqlock.write(new Int32Array(seqlock.fields).fill(7))
        break
      case 4:
        events[this.random.below(2)].set()
        futex.wake(words, 0, 2)
        break
      default:
        ;(await rwlock.lockReadAsync(TIMED)).unlock()
    }
  }

  /** Another kernel, behind a pool. It has its own thread: on this thread, new locks would belong to it. */
  private async pool(goesOn: () => boolean): Promise<void> {
    const thread = new Worker(new URL('./poolthread.ts', import.meta.url))
    const gone = new Promise(resolve => thread.once('exit', resolve))
    thread.on('error', this.fault)
    thread.on('message', (told: string) => this.fault(new Error(told)))
    while (goesOn()) await new Promise(resolve => setTimeout(resolve, 20))
    thread.postMessage('end')
    await gone
  }
}
