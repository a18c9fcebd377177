import { assert } from '../arena/assert.ts'
import { check } from '../checker/check.ts'
import { checkedThreads, waitAndCancel } from './checksetup.ts'
import { PermitWait, Semaphore } from './semaphore.ts'

function permits(threads: number, count: number): { view: Int32Array; semaphores: Semaphore[] } {
  const view = checkedThreads(threads)
  const semaphores = Array.from({ length: threads }, () => Semaphore.at({ view }))
  Atomics.store(view, 0, count)
  return { view, semaphores }
}

const allBack = (view: Int32Array, count: number) => () =>
  assert((Atomics.load(view, 0) & 0x3fff_ffff) === count, 'every permit is back')

check(
  'a large and a small request for one permit short of both: each gets its permits',
  { time: 20_000 },
  () => {
    const { view, semaphores } = permits(2, 2)
    const use = (id: number, count: number) => () => {
      semaphores[id].acquireSync(count)
      semaphores[id].release(count)
    }
    return { threads: { large: use(0, 2), small: use(1, 1) }, final: allBack(view, 2) }
  },
)

check('a request runs out of time as permits come: it has them, or they stay', { time: 20_000 }, () => {
  const { view, semaphores } = permits(2, 0)
  return {
    threads: {
      hasty() {
        try {
          semaphores[0].acquireSync(1, { timeout: 1 })
        } catch {
          return
        }
        semaphores[0].release(1)
      },
      giver: () => semaphores[1].release(1),
    },
    final: allBack(view, 1),
  }
})

check(
  'the first in line is cancelled: who is behind it is served, and no permit is lost',
  { time: 20_000 },
  () => {
    const { view, semaphores } = permits(3, 0)
    return {
      threads: {
        first() {
          if (waitAndCancel(new PermitWait(semaphores[0], 2, 'acquire'))) semaphores[0].release(2)
        },
        second() {
          semaphores[1].acquireSync(1)
          semaphores[1].release(1)
        },
        giver: () => semaphores[2].release(1),
      },
      final: allBack(view, 1),
    }
  },
)
