import { assert } from '../arena/assert.ts'
import { check } from '../checker/check.ts'
import { checkedThreads } from './checksetup.ts'
import { CasesWait } from './sharedcases.ts'
import { SharedPipe } from './sharedpipe.ts'
import { ambient } from '../futex/ambient.ts'
import { parkSync } from './waiting.ts'

const places = [0, 128]

function pipes(threads: number, capacity: number): SharedPipe[][] {
  const view = checkedThreads(threads) as Int32Array<SharedArrayBuffer>
  view.fill(0)
  for (const at of places) {
    view[at + 1] = at + 1
    view[at + 2] = 77
    SharedPipe.initialize({ i32: view, at }, capacity, false)
  }
  return Array.from({ length: threads }, () => places.map(at => new SharedPipe({ i32: view, at }, null)))
}

interface Side {
  readonly pipe: SharedPipe
  readonly sends: boolean
  readonly value: unknown
}

function does(cases: readonly Side[], timeout?: number): { index: number; value: unknown } | null {
  const wait = new CasesWait('select', cases)
  const served = parkSync(ambient(), wait, timeout === undefined ? undefined : { timeout })
  return served ? { index: wait.index, value: wait.value } : null
}

for (const capacity of [0, 1]) {
  check(`a value passes through a channel of capacity ${capacity}`, { time: 20_000 }, () => {
    const [[one], [two]] = pipes(2, capacity)
    return {
      threads: {
        sender: () => does([{ pipe: one, sends: true, value: true }]),
        receiver: () => does([{ pipe: two, sends: false, value: undefined }]),
      },
      final: ({ results }) => assert((results[1] as { value: unknown }).value === true, 'it was received'),
    }
  })
}

check(
  'a receiver runs out of time as the value comes: it has it, or the sender keeps it',
  { time: 20_000 },
  () => {
    const [[one], [two]] = pipes(2, 1)
    return {
      threads: {
        sender: () => does([{ pipe: one, sends: true, value: true }]),
        receiver: () => does([{ pipe: two, sends: false, value: undefined }], 1),
      },
      final: ({ results }) =>
        assert((results[1] === null) === (one.count === 1), 'received, or still in the channel'),
    }
  },
)

check(
  'two selects that face each other at two unbuffered channels meet at exactly one',
  { time: 20_000 },
  () => {
    const [[a, b], [c, d]] = pipes(2, 0)
    return {
      threads: {
        sender: () =>
          does([
            { pipe: a, sends: true, value: true },
            { pipe: b, sends: true, value: false },
          ]),
        receiver: () =>
          does([
            { pipe: d, sends: false, value: undefined },
            { pipe: c, sends: false, value: undefined },
          ]),
      },
      final({ results }) {
        const [sent, received] = results as { index: number; value: unknown }[]
        assert(sent.index + received.index === 1, 'both were served at the same channel')
        assert(received.value === (sent.index === 0), 'and the value is that one')
      },
    }
  },
)
