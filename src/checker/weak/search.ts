/** Explores one check under the memory model of the language, in slices: `Search` for `memory: 'weak'`. */
import { CheckError } from '../errors.ts'
import { type Failure, messageOf } from '../report/failure.ts'
import { Guards } from '../machine/guards.ts'
import { TURNS_MAX } from '../machine/machine.ts'
import { Memory } from '../machine/memory.ts'
import { type CheckOptions, validateOptions } from '../run/options.ts'
import { isExpected, notExpected, Outcomes } from '../spec/outcomes.ts'
import { pending, siteName } from '../machine/pending.ts'
import type { Program, Setup } from '../machine/program.ts'
import type { RecordedStep } from '../report/recording.ts'
import { refuse } from '../instrument/refusal.ts'
import type { CheckResult } from '../search/search.ts'
import { throwUnlessSomething } from '../search/search.ts'
import { runSetup } from '../machine/setup.ts'
import type { WeakEvent } from './event.ts'
import { Executions, type Found, Grounds } from './executions.ts'
import { explain } from './explain.ts'
import { isLivelock } from './livelock.ts'
import { endsOf } from './replay.ts'
import { type ThreadNode, Threads } from './threads.ts'
import { verdict } from '../search/verdict.ts'

const now: () => number = performance.now.bind(performance)

/** Memory that only the set-up may allocate: the search does not model the initialization by a thread. */
class SetupMemory extends Memory {
  override allocate(thread: number, length: number, max: number | undefined): SharedArrayBuffer {
    if (thread >= 0)
      refuse("a thread made shared memory in a check with `memory: 'weak'`", 'Make it in the set-up')
    return super.allocate(thread, length, max)
  }
}

export class WeakSearch {
  readonly name: string
  readonly options: CheckOptions
  private readonly memory = new SetupMemory(0)
  private readonly guards = new Guards(this.memory)
  private readonly threads: Threads
  private readonly work: Generator<void, void, void>
  private readonly outcomes = new Outcomes()
  /** Names of the executions that have been judged: several promises may lead to the same execution. */
  private readonly seen = new Set<string>()
  private readonly left = new Set<string>()
  private executions = 0
  private redundant = 0
  private depth = 0
  private elapsed = 0
  private over = false
  private failure: Failure | undefined
  private steps: readonly RecordedStep[] = []

  constructor(name: string, options: CheckOptions, setup: Setup) {
    validateOptions(options)
    this.name = name
    this.options = options
    this.threads = new Threads(this.memory, () => this.guardedSetup(setup), options.turns ?? TURNS_MAX)
    this.work = this.explore()
  }

  /** Explores for about `budget` milliseconds. True when the search is over. */
  run(budget: number = Number.POSITIVE_INFINITY): boolean {
    const started = now()
    const { options } = this
    this.guards.install()
    pending.unseen = undefined
    pending.weak = true
    try {
      while (!this.over) {
        if (this.work.next().done === true) {
          this.over = true
          if (this.failure === undefined) {
            throwUnlessSomething(this.executions, this.threads.steps, this.stepsMax)
          }
          break
        }
        const spent = now() - started
        if (this.failure !== undefined && options.keepGoing !== true) this.over = true
        else if (this.executions >= (options.executions ?? Number.POSITIVE_INFINITY))
          this.stop(`it was to stop after ${options.executions} executions`)
        else if (this.elapsed + spent > (options.time ?? Number.POSITIVE_INFINITY))
          this.stop(`it was to stop after ${options.time} ms`)
        if (spent > budget) break
      }
    } finally {
      pending.weak = false
      if (pending.unseen !== undefined) this.left.add(pending.unseen)
      this.guards.remove()
      this.elapsed += now() - started
    }
    return this.over
  }

  private stop(why: string): void {
    this.left.add(why)
    this.over = true
  }

  get result(): CheckResult {
    const why = [
      this.failure !== undefined && this.options.keepGoing !== true ? 'it stopped at the failure' : '',
      this.over ? '' : 'it was interrupted',
      ...this.left,
    ].filter(text => text !== '')
    return {
      name: this.name,
      ...verdict(this.failure !== undefined, why),
      explorer: 'weak',
      executions: this.executions,
      redundant: this.redundant,
      steps: this.threads.steps,
      depth: this.depth,
      seconds: this.elapsed / 1000,
      fraction: this.over ? 1 : 0,
      probability: undefined,
      failure: this.failure,
      threads: this.steps.some(({ thread }) => thread === this.threads.count)
        ? [...this.threads.names, 'final']
        : this.threads.names,
      outcomes: this.outcomes.list,
    }
  }

  get recorded(): readonly RecordedStep[] {
    return this.steps
  }

  private get stepsMax(): number {
    return this.options.steps ?? STEPS_MAX
  }

  private guardedSetup(setup: Setup): Program {
    const program = runSetup(this.guards, setup)
    for (const part of ['recover', 'always'] as const) {
      if (program[part] === undefined) continue
      throw new CheckError(
        'ERR_CHECK_WEAK',
        `the set-up returns \`${part}\`, which a check with \`memory: 'weak'\` does not have: ${part === 'always' ? 'there is no single state of memory at a step' : 'no thread dies in it'}`,
      )
    }
    return program
  }

  private *explore(): Generator<void, void, void> {
    this.threads.begin()
    const { memory } = this
    const image = new Map(
      memory.buffers.map(({ buffer, bytes }) => [memory.stretchOf(buffer).start, bytes.slice()]),
    )
    const initial = (address: number): number => {
      for (const [start, bytes] of image) {
        if (address >= start && address < start + bytes.length) return bytes[address - start]
      }
      return 0
    }
    const executions = new Executions(this.threads, { steps: this.stepsMax, answers: ANSWERS_MAX }, initial)
    const grounds = new Grounds()
    for (let round = 0; ; round++) {
      let isNew = false
      for (const found of executions.all(grounds.writes)) {
        if (found.kind === 'left') this.left.add(found.why)
        if (found.kind === 'whole' || found.kind === 'spins') {
          if (this.isSeen(found.events)) continue
          isNew = grounds.add(found.events) || isNew
          yield* this.judge(found, initial)
        }
        yield
      }
      if (!isNew || !executions.allPassed) return
      if (round === ROUNDS_MAX) {
        this.left.add(
          `the search stopped after ${ROUNDS_MAX} rounds of promised writes and still found new ones`,
        )
        return
      }
    }
  }

  private isSeen(events: readonly WeakEvent[]): boolean {
    const name = events
      .map(({ thread, at, found, sources }) => `${thread}.${at} ${sources?.join()} ${found?.join()}`)
      .sort()
      .join(';')
    if (this.seen.has(name)) return true
    this.seen.add(name)
    return false
  }

  private *judge(
    found: Extract<Found, { events: unknown }>,
    initial: (address: number) => number,
  ): Generator<void, void, void> {
    const { threads } = this
    const { events } = found
    if (events.length > this.depth) this.depth = events.length
    const thrown = found.ends.find(({ end }) => end?.threw === true)
    if (thrown !== undefined) {
      this.executions++
      this.fail(
        events,
        'exception',
        `uncaught exception in ${threads.names[thrown.thread]}`,
        thrown.end!.value,
      )
      return
    }
    if (found.kind === 'spins') {
      if (isLivelock(events, found.ends)) this.failSpinning(events, found.ends)
      else this.redundant++
      return
    }
    for (const end of endsOf(threads, events, initial, ANSWERS_MAX, this.options.rerun !== false)) {
      if (end === undefined) {
        this.left.add('a read of the final assertion can be torn in too many ways')
        continue
      }
      this.executions++
      if (end.events.length > this.depth) this.depth = end.events.length
      if (end.threw) this.fail(end.events, 'assertion', 'the final assertion failed', end.value)
      else this.reach(end.events, end.value)
      yield
      if (this.failure !== undefined && this.options.keepGoing !== true) return
    }
  }

  private reach(events: readonly WeakEvent[], value: unknown): void {
    const { expectOutcomes, onlyOutcomes } = this.options
    if (value === undefined && onlyOutcomes !== true) return
    const text = this.outcomes.add(value)
    if (onlyOutcomes !== true || expectOutcomes === undefined) return
    if (!isExpected(expectOutcomes, text))
      this.fail(events, 'unexpected-outcome', notExpected(text), undefined)
  }

  private fail(
    events: readonly WeakEvent[],
    kind: Failure['kind'],
    what: string,
    error: unknown,
    more: readonly string[] = [],
  ): void {
    if (this.failure !== undefined) return
    const { steps, detail, threads, marked } = explain(events, this.threads.count)
    this.steps = steps
    this.failure = {
      kind,
      title: error === undefined ? what : `${what}: ${messageOf(error)}`,
      detail: [
        ...more,
        'The steps are in a memory order: all events of all threads, as the memory model orders them.',
        ...(detail.length === 0 && kind !== 'livelock'
          ? ['Every read finds the latest write: this also happens in an interleaving.']
          : detail),
      ],
      schedule: { threads, crashes: [] },
      marked,
      error,
      weak: true,
    }
  }

  private failSpinning(events: readonly WeakEvent[], nodes: readonly ThreadNode[]): void {
    this.executions++
    const plain = events.some(
      ({ thread, at, access }) =>
        !access.atomic && nodes[thread]?.state === 'spins' && at >= nodes[thread].turn,
    )
    const stuck = nodes.filter(({ state }) => state === 'spins')
    const names = stuck.map(({ thread }) => this.threads.names[thread]).join(', ')
    this.fail(
      events,
      'livelock',
      `livelock: ${names} may spin for ever at ${stuck.map(({ thread, access }) => siteName(access?.site ?? pending.spunSite[thread])).join(', ')}: a turn of the loop changes nothing, and nothing changes the values that it reads`,
      undefined,
      plain
        ? [
            'The model does not promise that a plain read ever finds a later write: a loop that waits must read with Atomics.load.',
          ]
        : [],
    )
  }
}

const STEPS_MAX = 200
const ANSWERS_MAX = 10_000
const ROUNDS_MAX = 16
