import { assert } from '../../arena/assert.ts'
import { currentFutexes } from '../../futex/core/currentfutexes.ts'
import { check, type Setup } from '../../checker/check.ts'
import { BOUNDED, CheckedThreads, DIES, each, NONE } from '../../../testing/sync/checksetup.ts'
import { CasesWait } from './sharedcases.ts'
import { SharedPipe } from './sharedpipe.ts'
import { waitSync } from '../wait/waiting.ts'

/** Values that need no heap: 1 is sent by the first thread, 2 by the second, and so on. */
type Doing =
  | 'sends'
  | 'receives'
  | 'waits to send'
  | 'waits to receive'
  | 'is late to send'
  | 'is late to receive'
  | 'is cancelled as it waits to send'
  | 'is cancelled as it waits to receive'
  | 'tries to send'
  | 'tries to receive'
  | 'closes'

interface Scene {
  readonly capacity: number
  readonly latest?: boolean
  /** What is in the ring at first: values from 11 up. */
  readonly full?: number
  readonly does: readonly Doing[]
  readonly mortal?: number
  /** What the dead thread owed: the recovering thread tries it in its place. */
  readonly owes?: 'send' | 'receive' | 'close'
}

const AT = 64
const NOTHING = 'nothing'

function pipeAt(threads: CheckedThreads, capacity: number, latest: boolean, at: number): SharedPipe[] {
  const { view } = threads
  view[at + 1] = at
  view[at + 2] = 77
  SharedPipe.initialize({ i32: view, at }, capacity, latest)
  const pipes = each(threads.contexts.length - 1, () => new SharedPipe({ i32: view, at }, null))
  // Each thread knows that the channel is in its domain.
  pipes.forEach((pipe, id) => {
    pipe.lock(threads.contexts[id])
    pipe.unlock(threads.contexts[id])
  })
  threads.keep(
    pipes.map(({ senders }) => senders),
    pipes.map(({ receivers }) => receivers),
  )
  return pipes
}

function scene({ capacity, latest = false, full = 0, does, mortal, owes }: Scene): Setup {
  return () => {
    const count = does.length
    const threads = new CheckedThreads(count, mortal !== undefined)
    const pipes = pipeAt(threads, capacity, latest, AT)
    const end = (id: number, sends: boolean): CasesWait =>
      new CasesWait('wait', [{ pipe: pipes[id], sends, value: sends ? id + 1 : undefined }])
    const tries = (id: number, sends: boolean): unknown => {
      const wait = end(id, sends)
      return wait.attempt(currentFutexes().context) ? outcome(wait, sends) : NOTHING
    }
    for (let value = 0; value < full; value++) {
      new CasesWait('wait', [{ pipe: pipes[count], sends: true, value: 11 + value }]).attempt(
        threads.contexts[count],
      )
    }
    const rescued: unknown[] = []
    const bodies = does.map((doing, id) => {
      if (doing === 'closes') return () => close(pipes[id])
      const sends = doing.endsWith('send') || doing === 'sends'
      if (doing.startsWith('tries')) return () => tries(id, sends)
      const wait = end(id, sends)
      if (doing.startsWith('is cancelled')) return threads.cancelled(id, wait)
      if (doing === 'sends' || doing === 'receives') {
        return () => (waitSync(wait, undefined) ? outcome(wait, sends) : NOTHING)
      }
      const sleeps = threads.asleep(id, wait, doing.startsWith('is late'))
      return () => (sleeps() ? outcome(wait, sends) : NOTHING)
    })
    return {
      threads: bodies,
      ...(mortal !== undefined && {
        recover: (dead: number) =>
          threads.recover(dead, () => {
            if (owes === 'close') close(pipes[count])
            if (owes === undefined || owes === 'close') return
            const done = tries(count, owes === 'send')
            if (owes === 'receive' && done !== NOTHING) rescued.push(done)
          }),
      }),
      final({ results, crashed }) {
        const sent: unknown[] = Array.from({ length: full }, (_, value) => 11 + value)
        const received: unknown[] = [...rescued]
        does.forEach((doing, id) => {
          const result = results[id]
          const sends = doing.endsWith('send') || doing === 'sends'
          if (doing.startsWith('waits') && !crashed.includes(id))
            assert(result !== NOTHING, 'a waiter is served')
          if (result === NOTHING || result === undefined || result === 'closed') return
          if (sends) sent.push(result)
          else received.push(result)
        })
        const { context } = { context: threads.contexts[count] }
        for (;;) {
          const wait = end(count, false)
          if (!wait.attempt(context) || wait.closed) break
          received.push(wait.value)
        }
        assert(new Set(received).size === received.length, 'no value is received twice')
        const mayBe = new Set([
          ...sent,
          ...crashed.map(id => id + 1),
          ...(crashed.length > 0 ? [count + 1] : []),
        ])
        if (!does.includes('is cancelled as it waits to send')) {
          for (const value of received) assert(mayBe.has(value), 'what is received was sent')
        }
        if (crashed.length === 0 && !latest) {
          for (const value of sent)
            assert(received.includes(value), 'what was sent is received, or still there')
        } else if (!latest) {
          // One value may have died with its receiver.
          const lost = sent.filter(value => !received.includes(value))
          assert(lost.length <= 1, 'at most one is lost, with its receiver')
          const receiverDied = !does[crashed[0]].endsWith('send') && does[crashed[0]] !== 'sends'
          assert(lost.length === 0 || receiverDied, 'and only with a receiver')
        }
      },
    }
  }
}

function close(pipe: SharedPipe): void {
  const { context } = currentFutexes()
  pipe.lock(context)
  pipe.close(context)
  pipe.unlock(context)
}

function outcome(wait: CasesWait, sends: boolean): unknown {
  if (wait.closed) return 'closed'
  return sends ? (wait as unknown as { cases: { value: number }[] }).cases[0].value : wait.value
}

for (const capacity of [0, 1]) {
  const name = capacity === 0 ? 'unbuffered' : 'one slot'
  check(`${name}: a send and a receive`, {}, scene({ capacity, does: ['sends', 'receives'] }))
  check(
    `${name}: a value arrives as the time of its receiver is over`,
    {},
    scene({ capacity, does: ['is late to receive', 'tries to send'] }),
  )
  check(
    `${name}: a value arrives as its receiver is cancelled`,
    {},
    scene({ capacity, does: ['is cancelled as it waits to receive', 'tries to send'] }),
  )
  check(
    `${name}: a slot becomes free as the time of a sender is over`,
    {},
    scene({ capacity, full: capacity, does: ['is late to send', 'tries to receive'] }),
  )
  check(
    `${name}: a slot becomes free as a sender is cancelled`,
    {},
    scene({ capacity, full: capacity, does: ['is cancelled as it waits to send', 'tries to receive'] }),
  )
  check(
    `${name}: it is closed while a receiver waits`,
    {},
    scene({ capacity, does: ['waits to receive', 'closes'] }),
  )
  check(
    `${name}: two receivers wait, and the first is cancelled`,
    {},
    scene({ capacity, does: ['is cancelled as it waits to receive', 'waits to receive', 'tries to send'] }),
  )
  check(
    `${name}: two senders wait, and the time of one is over`,
    {},
    scene({ capacity, full: capacity, does: ['is late to send', 'is late to send', 'tries to receive'] }),
  )
  // Without a slot the recovering thread cannot send or receive for the dead one: it closes the channel.
  const owes = (what: 'send' | 'receive'): Scene['owes'] => (capacity === 0 ? 'close' : what)
  check(
    `${name}: the sender dies at any step, and a receiver waits`,
    DIES(1),
    scene({ capacity, does: ['waits to receive', 'tries to send'], mortal: 1, owes: owes('send') }),
  )
  check(
    `${name}: the receiver dies at any step, and a sender waits`,
    DIES(1),
    scene({
      capacity,
      full: capacity,
      does: ['waits to send', 'tries to receive'],
      mortal: 1,
      owes: owes('receive'),
    }),
  )
  check(
    `${name}: the closing thread dies at any step, and a receiver waits`,
    DIES(1),
    scene({ capacity, does: ['waits to receive', 'closes'], mortal: 1, owes: 'close' }),
  )
}
check(
  'the sender dies at any step, with the lock or without, as another thread receives',
  DIES(0),
  scene({ capacity: 1, does: ['tries to send', 'tries to receive'], mortal: 0 }),
)
check(
  `the receiver dies at any step as the time of a waiting sender is over ${NONE}`,
  { ...DIES(1), ...BOUNDED, preemptions: 0 },
  scene({ capacity: 1, full: 1, does: ['is late to send', 'tries to receive'], mortal: 1 }),
)
check(
  'the latest value only: two send, one receives',
  {},
  scene({ capacity: 1, latest: true, does: ['tries to send', 'tries to send', 'tries to receive'] }),
)
check(
  'the latest value only: the sender dies at any step',
  DIES(0),
  scene({ capacity: 1, latest: true, full: 1, does: ['tries to send', 'tries to receive'], mortal: 0 }),
)

/**
 * Two selects that face each other at two unbuffered channels; `asleep`: the receiver waits from the start.
 */
function selects(asleep: boolean, mortal = false): Setup {
  return () => {
    const threads = new CheckedThreads(2, mortal)
    const one = pipeAt(threads, 0, false, AT)
    const two = pipeAt(threads, 0, false, AT + 64)
    const sending = new CasesWait('select', [
      { pipe: one[0], sends: true, value: true },
      { pipe: two[0], sends: true, value: false },
    ])
    const receiving = new CasesWait('select', [
      { pipe: two[1], sends: false, value: undefined },
      { pipe: one[1], sends: false, value: undefined },
    ])
    const sleeps = asleep ? threads.asleep(1, receiving) : null
    return {
      threads: {
        sender: () => (asleep ? sending.attempt(currentFutexes().context) : waitSync(sending, undefined)),
        receiver: () => (sleeps === null ? waitSync(receiving, undefined) : sleeps()),
      },
      ...(mortal && {
        recover: (dead: number) => threads.recover(dead, () => void [one[2], two[2]].map(close)),
      }),
      final({ crashed }) {
        if (crashed.length === 0)
          assert(sending.index + receiving.index === 1, 'both were served at the same channel')
        assert(crashed.length > 0 || receiving.index >= 0, 'the receiver was served')
        if (!receiving.closed)
          assert(receiving.value === (receiving.index === 1), 'and the value is that one')
      },
    }
  }
}

check('two selects that face each other meet at exactly one channel', {}, selects(false))
check('a send meets a select that waits at two channels', {}, selects(true))
check('the thread that serves a select dies at any step', DIES(0), selects(true, true))
