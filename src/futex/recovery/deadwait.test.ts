import { expect, test } from 'vitest'
import { Arena, ArenaPlan } from '../../arena/memory/arena.ts'
import { KernelThread } from '../../arena/sync/thread.ts'
import { prepareWordWait, type PreparedWait } from '../operations/call.ts'
import { EOWNERDEAD } from '../core/errno.ts'
import { Futexes } from '../core/futexes.ts'
import { initializeFutexes, reserveFutexes } from '../core/layout.ts'
import { ROBUST_PI, WordMutex } from '../robust/mutex.ts'
import { takeOff } from '../core/queue.ts'
import { movingBy, Owner, OWNER_EXITING, QUEUE_RESTARTED, Waiter, QUEUE_WOKEN } from '../core/records.ts'
import { promiseWaiter } from '../core/sleep.ts'
import { MATCH_ANY } from '../operations/waitwake.ts'

/** Thread 65 has died and was not recovered. Thread 64 detects that. */
const DEAD = 65

function pair(): { lives: Futexes; dead: Futexes; view: Int32Array<SharedArrayBuffer> } {
  const plan = new ArenaPlan()
  const sizes = { waiters: 16, buckets: 4, mappings: 4, spaces: 2 }
  const layout = reserveFutexes(plan, sizes)
  const arena = Arena.create(plan, { debug: true })
  initializeFutexes(arena, layout)
  const now = (): number => performance.now()
  const thread = new KernelThread(arena, 64)
  thread.rescuer = { repairDead: owner => owner === DEAD }
  const lives = new Futexes(thread, layout, { now })
  const view = new Int32Array(new SharedArrayBuffer(256))
  const mapped = lives.map(view.buffer)
  const dead = new Futexes(new KernelThread(arena, DEAD), reserveFutexes(new ArenaPlan(), sizes), {
    now,
    space: lives.space.handle,
  })
  dead.space.adopt(view.buffer, lives.space.findBuffer(mapped.buffer)?.handles as never)
  return { lives, dead, view }
}

test('a sleeper whose waiter a dead thread was moving removes it', () => {
  const { lives, view } = pair()
  const { context } = lives
  const { i32 } = context
  const word = lives.word(view, 0)
  const wait = prepareWordWait(context, promiseWaiter(), word, true, 0, Infinity, MATCH_ANY) as PreparedWait
  const [waiter] = wait.waiters
  // The state that a mover leaves which dies before it reaches the other queue.
  takeOff(context, waiter)
  Atomics.store(i32, waiter + Waiter.queue, movingBy(DEAD))
  expect(takeOff(context, waiter)).toBe(false)
  expect(Atomics.load(i32, waiter + Waiter.queue)).toBe(QUEUE_WOKEN)
  Atomics.store(i32, waiter + Waiter.queue, movingBy(DEAD))
  i32[waiter + Waiter.pi] = 1
  expect(takeOff(context, waiter)).toBe(false)
  expect(Atomics.load(i32, waiter + Waiter.queue)).toBe(QUEUE_RESTARTED)
})

test('a locker finishes the exit of an owner whose ending thread died, and takes the lock', () => {
  const { lives, dead, view } = pair()
  const { i32 } = lives.context
  const flow = dead.makeOwner()
  expect(new WordMutex(dead, dead.word(view, 0), ROBUST_PI).lockSync(flow)).toBe(0)
  Atomics.store(i32, flow.record + Owner.state, OWNER_EXITING)
  i32[flow.record + Owner.exiter] = DEAD + 1
  expect(new WordMutex(lives, lives.word(view, 0), ROBUST_PI).lockSync(lives.self)).toBe(-EOWNERDEAD)
})
