/**
 * Replays an execution with all threads in one set-up, then runs the final assertion as a thread that begins
 * when all others have ended.
 */
import type { Twin } from '../../coroutine/core/coroutine.ts'
import { CheckError } from '../errors.ts'
import { formatOutcome } from '../spec/outcomes.ts'
import { siteName } from '../machine/pending.ts'
import { type Outcome, resumableFinal } from '../machine/program.ts'
import { validate } from './axioms.ts'
import { sameBytes, sameRange, type WeakEvent } from './event.ts'
import { answersTo } from './sources.ts'
import { bodyOf, type Running, type Threads } from './threads.ts'

/** How an execution ended, with the events of the final assertion. */
export interface Ending {
  readonly events: readonly WeakEvent[]
  readonly value: unknown
  readonly threw: boolean
}

/**
 * Calls `ends` with the threads in order and in reverse order. A difference comes from state outside shared
 * memory that the bodies share. Real threads do not share such state, and the search would see only two of
 * its possible orders, so a difference is an error.
 */
export function endsOf(
  threads: Threads,
  events: readonly WeakEvent[],
  initial: (address: number) => number,
  most: number,
  twice: boolean,
): (Ending | undefined)[] {
  const found = [...ends(threads, events, initial, most, false)]
  if (!twice) return found
  const name = (ending: Ending | undefined): string => `${ending?.threw} ${formatOutcome(ending?.value)}`
  const others = [...ends(threads, events, initial, most, true)]
  const same = found.length === others.length && found.every((ending, n) => name(ending) === name(others[n]))
  if (!same) differs(threads, undefined)
  return found
}

/**
 * Every way in which an execution of the threads can end. Where writes race there is no single final state of
 * memory, so the reads of the final assertion may have several answers. Undefined for an ending that has too
 * many.
 */
function* ends(
  threads: Threads,
  events: readonly WeakEvent[],
  initial: (address: number) => number,
  most: number,
  backwards: boolean,
): Generator<Ending | undefined, void, void> {
  const joiner = threads.count
  const { results, final } = again(threads, events, backwards)
  if (final === undefined) {
    yield { events, value: results.some(value => value !== undefined) ? results : undefined, threw: false }
    return
  }
  yield* goOn([...events], threads.start(final, joiner, { crashed: [], results } satisfies Outcome), [])

  function* goOn(
    all: WeakEvent[],
    running: Running,
    answered: readonly (Uint8Array | undefined)[],
  ): Generator<Ending | undefined, void, void> {
    const found = [...answered]
    for (;;) {
      const { access, state } = running
      if (state === 'ended') {
        yield { events: all, value: running.end!.value, threw: running.end!.threw }
        return
      }
      if (all.length > FINAL_EVENTS_MAX) {
        yield undefined
        return
      }
      const at = found.length
      if (!access!.reads) {
        const { value, wrote } = threads.perform(running, undefined)
        all.push({ thread: joiner, at, access: access!, sources: undefined, found: undefined, wrote, value })
        found.push(undefined)
        continue
      }
      const answers = answersTo(access!, joiner, at, all, [], initial, joiner, undefined, most)
      if (answers === undefined) {
        yield undefined
        return
      }
      const valid: WeakEvent[] = []
      for (const { sources, found: bytes } of answers) {
        const { value, wrote } = access!.apply(bytes)
        const event = { thread: joiner, at, access: access!, sources, found: bytes, wrote, value }
        if (validate([...all, event], joiner) !== undefined) valid.push(event)
      }
      for (const [n, event] of valid.entries()) {
        // The last alternative continues the current run; each of the others needs a new run.
        const isLast = n === valid.length - 1
        const other = isLast ? running : restart(found)
        threads.perform(other, event.found)
        yield* goOn([...all, event], other, [...found, event.found])
      }
      return
    }
  }

  function restart(found: readonly (Uint8Array | undefined)[]): Running {
    const run = again(threads, events, backwards)
    const running = threads.start(run.final!, joiner, { crashed: [], results: run.results } satisfies Outcome)
    for (const bytes of found) threads.perform(running, bytes)
    return running
  }
}

const FINAL_EVENTS_MAX = 1000

/** Runs all threads of an execution, one after the other, each with the recorded results of its reads. */
function again(
  threads: Threads,
  events: readonly WeakEvent[],
  backwards: boolean,
): { results: unknown[]; final: Twin | undefined } {
  threads.forget()
  const program = threads.begin()
  const results: unknown[] = []
  for (let n = 0; n < threads.count; n++) {
    const thread = backwards ? threads.count - 1 - n : n
    const running = threads.start(bodyOf(program, thread, threads.names), thread)
    const own = events.filter(event => event.thread === thread).sort((a, b) => a.at - b.at)
    for (const event of own) {
      const { access } = running
      const same =
        access !== undefined &&
        access.kind === event.access.kind &&
        access.site === event.access.site &&
        sameRange(access, event.access)
      if (!same || !sameBytes(threads.perform(running, event.found).wrote, event.wrote))
        differs(threads, event)
    }
    if (running.state !== 'ended' || running.end!.threw) differs(threads, own.at(-1))
    results[thread] = running.end!.value
  }
  return { results, final: program.final === undefined ? undefined : resumableFinal(program.final) }
}

function differs(threads: Threads, event: WeakEvent | undefined): never {
  const where =
    event === undefined ? '' : ` at ${siteName(event.access.site)}, in ${threads.names[event.thread]}`
  throw new CheckError(
    'ERR_CHECK_NONDETERMINISTIC',
    `the same execution came out differently when the threads ran in another order${where}: with \`memory: 'weak'\` a thread may depend only on the values that it reads from shared memory; let threads share nothing else, and use no clock, no randomness and no state of an earlier execution`,
  )
}
