import { assert } from '../arena/assert.ts'
import { check } from '../checker/check.ts'
import { checkedThreads } from './checksetup.ts'
import { Condition } from './condition.ts'
import { ambient } from '../futex/ambient.ts'
import { Mutex } from './mutex.ts'

interface Monitor {
  readonly view: Int32Array
  readonly mutexes: Mutex[]
  readonly conditions: Condition[]
  ready: boolean
}

function monitor(threads: number): Monitor {
  const view = checkedThreads(threads)
  return {
    view,
    mutexes: Array.from({ length: threads }, () => new Mutex({ view })),
    conditions: Array.from({ length: threads }, () => new Condition({ view, index: 4 })),
    ready: false,
  }
}

function waitUntilReady(shared: Monitor, id: number, timeout?: number): boolean {
  const { mutexes, conditions } = shared
  const token = mutexes[id].lockSync()
  let told = true
  while (!shared.ready && told) {
    if (timeout === undefined) conditions[id].waitSync(token)
    else told = conditions[id].waitForSync(token, timeout)
  }
  assert(mutexes[id].isHeldBy(ambient().tid), 'a wait ends with the mutex held')
  token.unlock()
  return shared.ready
}

function makeReady({ mutexes, conditions }: Monitor, shared: Monitor, id: number): void {
  const token = mutexes[id].lockSync()
  shared.ready = true
  token.unlock()
  conditions[id].notify()
}

check('a condition that is notified between the unlock and the sleep is not missed', { time: 20_000 }, () => {
  const shared = monitor(2)
  return {
    threads: { waiter: () => waitUntilReady(shared, 0), notifier: () => makeReady(shared, shared, 1) },
    final: ({ results }) => assert(results[0] === true, 'it saw what it waited for'),
  }
})

check(
  'a wait at a condition that runs out of time ends with the mutex held all the same',
  { time: 20_000 },
  () => {
    const shared = monitor(2)
    return {
      threads: { waiter: () => waitUntilReady(shared, 0, 1), notifier: () => makeReady(shared, shared, 1) },
    }
  },
)
