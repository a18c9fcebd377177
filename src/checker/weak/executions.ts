/**
 * All executions of a program that the memory model allows.
 *
 * An execution is a graph: the accesses of each thread in their order, and for each byte that is read the
 * write that it comes from. The order in which a graph is built does not matter, so each graph is built in
 * one order only:
 *   - an access that reads nothing is added immediately;
 *   - the first thread whose next access is a read answers it from the existing writes, with one branch
 *     for each answer. Or the thread passes: then it must take a byte from a write that is added later. The
 *     search returns to it when there is such a write.
 *
 * This builds each graph once in which no read depends on itself, through program order and the sources of
 * reads. The model also allows graphs with such a cycle:
 *
 *     one            two
 *     ---            ---
 *     r = x   (A)    s = y   (C)          x = y = 1 is allowed: (A) takes (D), (C) takes (B)
 *     y = 1   (B)    x = 1   (D)
 *
 * The rules do not say where the values of a cycle come from: with them alone `y = r` and `x = s` could give
 * any number to each other. Here a value needs a ground. When all threads have passed, one of them may take a
 * byte from a promised write. Only a write of an execution that was found before can be promised. The search
 * is repeated until it finds no new write.
 */
import { validate } from './axioms.ts'
import { keyOf, sameBytes, sameRange, type WeakEvent } from './event.ts'
import { type Answer, answersTo, type Write, writeOf } from './sources.ts'
import type { ThreadNode, Threads } from './threads.ts'

/** A result of the search. */
export type Found =
  /** All threads have ended, and no axiom is broken. */
  | { readonly kind: 'whole'; readonly events: readonly WeakEvent[]; readonly ends: readonly ThreadNode[] }
  /** The same, with threads that spin in a loop. */
  | { readonly kind: 'spins'; readonly events: readonly WeakEvent[]; readonly ends: readonly ThreadNode[] }
  /** Part of the search was left out. */
  | { readonly kind: 'left'; readonly why: string }
  /** No result: lets the caller interrupt the search. */
  | { readonly kind: 'none' }

export interface Limits {
  /** The most events of an execution. */
  readonly steps: number
  /** The most answers to one read. */
  readonly answers: number
}

export class Executions {
  private readonly threads: Threads
  private readonly limits: Limits
  private readonly initial: (address: number) => number
  private readonly events: WeakEvent[] = []
  private readonly nodes: ThreadNode[] = []
  /** The number of events when a thread passed; -1 when it has not passed. */
  private readonly passed: number[] = []
  private readonly promised = new Map<number, Write>()
  /** The writes that may be promised. */
  private grounds: readonly Write[] = []
  /** Whether all threads have passed in some execution: only then can a promise lead further. */
  allPassed = false

  constructor(threads: Threads, limits: Limits, initial: (address: number) => number) {
    this.threads = threads
    this.limits = limits
    this.initial = initial
  }

  /** All executions in which every promised write is one of `grounds`. */
  *all(grounds: readonly Write[]): Generator<Found, void, void> {
    this.grounds = grounds
    this.allPassed = false
    this.events.length = 0
    this.nodes.length = 0
    this.promised.clear()
    for (let thread = 0; thread < this.threads.count; thread++) {
      this.nodes.push(this.threads.root(thread))
      this.passed[thread] = -1
    }
    yield* this.draw()
  }

  private *draw(): Generator<Found, void, void> {
    const { events, nodes } = this
    const writer = nodes.findIndex(({ state, access }) => state === 'step' && !access!.reads)
    if (writer >= 0) {
      yield* this.add(writer, undefined)
      return
    }
    const reader = nodes.findIndex((node, thread) => node.state === 'step' && this.hasNews(thread))
    if (reader >= 0) {
      yield* this.answer(reader)
      return
    }
    if (nodes.some(({ state }) => state === 'step')) {
      this.allPassed = true
      yield* this.promise()
      return
    }
    yield { kind: 'none' }
    if (this.promised.size > 0) return
    const spins = nodes.some(({ state }) => state === 'spins')
    yield { kind: spins ? 'spins' : 'whole', events: [...events], ends: [...nodes] }
  }

  /** Whether a thread has not passed, or a write has been added since that its read could take. */
  private hasNews(thread: number): boolean {
    const since = this.passed[thread]
    if (since < 0) return true
    const { access } = this.nodes[thread]
    return this.events.some(
      (event, at) => at >= since && event.wrote !== undefined && overlap(event, access!),
    )
  }

  private *answer(thread: number): Generator<Found, void, void> {
    const since = this.passed[thread]
    const fresh = (key: number): boolean =>
      this.events.some((event, at) => at >= since && keyOf(event.thread, event.at) === key)
    const answers = this.answers(thread, [], since < 0 ? undefined : fresh)
    if (answers === undefined) {
      yield { kind: 'left', why: 'a read can be torn in too many ways' }
      return
    }
    for (const answer of answers) yield* this.add(thread, answer)
    // Passing makes sense only if another thread is left that could write.
    if (!this.nodes.some(({ state }, other) => other !== thread && state === 'step')) return
    this.passed[thread] = this.events.length
    yield* this.draw()
    this.passed[thread] = since
  }

  private answers(
    thread: number,
    promises: readonly Write[],
    need: ((key: number) => boolean) | undefined,
  ): Answer[] | undefined {
    const { access, depth } = this.nodes[thread]
    return answersTo(
      access!,
      thread,
      depth,
      this.events,
      promises,
      this.initial,
      -1,
      need,
      this.limits.answers,
    )
  }

  /** All threads have passed: one of them takes a promised write. */
  private *promise(): Generator<Found, void, void> {
    const present = new Set(this.events.map(({ thread, at }) => keyOf(thread, at)))
    const open = this.grounds.filter(write => {
      if (present.has(write.key) || this.nodes[write.thread].state !== 'step') return false
      const known = this.promised.get(write.key)
      return known === undefined || known === write
    })
    if (open.length === 0) return
    const keys = new Set(open.map(({ key }) => key))
    for (let thread = 0; thread < this.nodes.length; thread++) {
      if (this.nodes[thread].state !== 'step') continue
      const answers = this.answers(thread, open, key => keys.has(key))
      if (answers === undefined) {
        yield { kind: 'left', why: 'a read can be torn in too many ways' }
        return
      }
      for (const answer of answers) {
        const added = answer.promised.filter(({ key }) => !this.promised.has(key))
        for (const write of added) this.promised.set(write.key, write)
        yield* this.add(thread, answer)
        for (const { key } of added) this.promised.delete(key)
      }
    }
  }

  /** Adds the next access of a thread, and explores every continuation. */
  private *add(thread: number, answer: Answer | undefined): Generator<Found, void, void> {
    const { events, nodes } = this
    if (events.length >= this.limits.steps) {
      yield { kind: 'left', why: `executions of more than ${this.limits.steps} steps were cut off` }
      return
    }
    const node = nodes[thread]
    const access = node.access!
    const { value, wrote } = access.apply(answer?.found)
    const key = keyOf(thread, node.depth)
    const promise = this.promised.get(key)
    if (promise !== undefined && !keeps(promise, { access, wrote })) return
    const since = this.passed[thread]
    events.push({
      thread,
      at: node.depth,
      access,
      sources: answer?.sources,
      found: answer?.found,
      wrote,
      value,
    })
    if (promise !== undefined) this.promised.delete(key)
    // A write that no read takes can come last in the memory order, so it breaks no axiom.
    const mayBreak = access.reads || promise !== undefined
    if (!mayBreak || validate(events, -1) !== undefined) {
      nodes[thread] = this.threads.child(node, answer?.found)
      this.passed[thread] = -1
      if (nodes[thread].state === 'rests') {
        yield {
          kind: 'left',
          why: 'a thread turned too often in a row in a loop that only reads shared memory and changes private state: raise `turns` if the loop ends by itself, or let a turn change nothing',
        }
      } else {
        yield* this.draw()
      }
      nodes[thread] = node
      this.passed[thread] = since
    } else {
      yield { kind: 'none' }
    }
    events.pop()
    if (promise !== undefined) this.promised.set(key, promise)
  }
}

function overlap(event: WeakEvent, access: { address: number; size: number }): boolean {
  const other = event.access
  return other.address < access.address + access.size && access.address < other.address + other.size
}

/** Whether the new event is the write that was promised. */
function keeps(promise: Write, { access, wrote }: Pick<WeakEvent, 'access' | 'wrote'>): boolean {
  const { access: said } = promise
  return (
    sameRange(said, access) &&
    said.atomic === access.atomic &&
    said.whole === access.whole &&
    sameBytes(promise.wrote, wrote)
  )
}

/** The writes of executions; each write with each of its values is kept once. */
export class Grounds {
  private readonly known = new Map<string, Write>()

  /** Returns whether one of the writes is new. */
  add(events: readonly WeakEvent[]): boolean {
    const before = this.known.size
    for (const event of events) {
      if (event.wrote === undefined) continue
      const { access } = event
      const name = `${keyOf(event.thread, event.at)} ${access.address} ${access.size} ${access.atomic} ${access.whole} ${event.wrote.join()}`
      if (!this.known.has(name)) this.known.set(name, writeOf(event))
    }
    return this.known.size > before
  }

  get writes(): readonly Write[] {
    return [...this.known.values()]
  }
}
