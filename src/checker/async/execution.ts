import { messageWithPlace } from './place.ts'
import { CheckError } from '../errors.ts'
import { requireAssertion } from '../machine/program.ts'
import { messageOf } from '../report/failure.ts'
import { Agenda, type AsyncEvent, type NewEvent } from './agenda.ts'
import type { Host } from './host.ts'
import { type AsyncProgram, type AsyncSetup, type AsyncTask, type Outside, tasksOf } from './program.ts'

/** Chooses the next event among the possible ones. */
export interface Chooser {
  pick(options: number, among: string): number
}

/** Records what happens, in a run whose steps are shown. */
export interface Witness {
  made(event: AsyncEvent): void
  happens(event: AsyncEvent): void
  settled(event: AsyncEvent, how: string): void
  ended(task: number, how: string): void
}

/** The failure of an execution. */
export interface Fault {
  readonly kind: 'assertion' | 'exception' | 'deadlock' | 'livelock'
  readonly title: string
  readonly detail: readonly string[]
  readonly error: unknown
}

export interface Limits {
  readonly steps: number
  readonly turns: number
  /** When tasks start. */
  readonly starts: number | readonly number[] | undefined
}

/** In place of a task: the set-up, and the final assertion. */
export const SETUP = -1
export const FINAL = -2
/** In place of a task: the console, which belongs to the runner and not to the program. */
export const EXEMPT = -3

/**
 * One run of the program, from the set-up until nothing is pending. Events happen one at a time, as the
 * chooser says. After each, microtasks and ticks run to their end, in the order that the language and Node
 * give them.
 */
export class Execution {
  readonly agenda: Agenda
  readonly host: Host
  readonly names: string[] = []
  /** The possible events at each choice. */
  readonly trace: string[] = []
  /** How each task ended. */
  readonly outcomes: string[] = []
  /** Why this execution does not cover all executions of its order. */
  readonly notes: Set<string> = new Set()
  fault: Fault | undefined
  /** Set when the program did something that cannot be explored. */
  refusal: CheckError | undefined
  /** Whether the limit of steps ended it. */
  cut = false
  readonly witness: Witness | undefined
  private readonly chooser: Chooser
  private readonly limits: Limits
  private readonly results: unknown[] = []
  private ended: boolean[] = []
  private program: AsyncProgram | undefined

  constructor(host: Host, chooser: Chooser, limits: Limits, witness?: Witness) {
    this.host = host
    this.chooser = chooser
    this.limits = limits
    this.witness = witness
    this.agenda = new Agenda(limits.turns)
  }

  /** How many events have happened. */
  get steps(): number {
    return this.agenda.happened.length
  }

  /** The task that runs. */
  get task(): number {
    const task = this.host.context.getStore() ?? SETUP
    return task === EXEMPT ? SETUP : task
  }

  nameOf(task: number): string {
    return task === SETUP ? 'the set-up' : task === FINAL ? 'the final assertion' : this.names[task]
  }

  /** Adds a pending event. */
  add(event: NewEvent): AsyncEvent {
    const added = this.agenda.add(event)
    this.witness?.made(added)
    return added
  }

  choose(options: number, among: string): number {
    this.trace.push(among)
    return this.chooser.pick(options, among)
  }

  /** One of these numbers; the search tries each. */
  oneOf(values: number | readonly number[], what: string): number {
    const all = typeof values === 'number' ? [values] : values
    return all.length === 1 ? all[0] : all[this.choose(all.length, `${what} ${all.join(' or ')}`)]
  }

  refuse(error: CheckError): CheckError {
    this.refusal ??= error
    return error
  }

  /** Records an error that no code caught. */
  uncaught(error: unknown, how: string): void {
    if (error instanceof CheckError) this.refuse(error)
    this.fault ??= {
      kind: isAssertion(error) ? 'assertion' : 'exception',
      title: `${isAssertion(error) ? 'assertion failed' : how} in ${this.nameOf(this.task)}: ${messageOf(error)}`,
      detail: [],
      error,
    }
  }

  run(setup: AsyncSetup, outside: Outside): void {
    this.begin(setup, outside)
    this.goOn(() => this.isOver())
    if (this.stopped) return
    const open = this.names.filter((_, t) => !this.ended[t])
    if (open.length > 0) {
      this.fault = this.stuck(open)
      return
    }
    this.conclude()
  }

  private get stopped(): boolean {
    return this.fault !== undefined || this.refusal !== undefined
  }

  private begin(setup: AsyncSetup, outside: Outside): void {
    const { host } = this
    try {
      this.program = host.context.run(SETUP, () => setup(outside))
    } catch (error) {
      if (error instanceof CheckError) throw error
      const text = `the set-up of the check threw: ${messageWithPlace(error)}. It runs before every execution and must succeed each time; move code that may fail into a task or the final assertion`
      throw new CheckError('ERR_CHECK_SETUP', text, { cause: error })
    }
    const tasks = tasksOf(this.program)
    this.ended = tasks.map(() => false)
    for (const { name } of tasks) this.names.push(name)
    tasks.forEach(({ body }, task) => {
      const { starts } = this.limits
      const delay = starts === undefined ? undefined : this.oneOf(starts, `${this.names[task]} starts at`)
      const time = delay === undefined ? 'free' : 'exact'
      const happen = (): void => this.start(task, body)
      this.add({ kind: 'start', name: 'starts', task, time, delay, line: undefined, keeps: true, happen })
    })
    this.drain()
    this.watch()
  }

  private start(task: number, body: AsyncTask): void {
    const end = (how: string): void => {
      this.ended[task] = true
      this.outcomes[task] = how
      this.witness?.ended(task, how)
    }
    const failed = (error: unknown): void => {
      end(`throws ${messageOf(error)}`)
      this.uncaught(error, 'uncaught exception')
    }
    settle(
      body,
      value => {
        this.results[task] = value
        end(`ends${value === undefined ? '' : ` with ${show(value)}`}`)
      },
      failed,
    )
  }

  private conclude(): void {
    const final = this.program?.final
    if (final === undefined) return
    let over = false
    const failed = (error: unknown): void => {
      over = true
      if (error instanceof CheckError) this.refuse(error)
      this.fault ??= {
        kind: 'assertion',
        title: `the final assertion failed: ${messageOf(error)}`,
        detail: [],
        error,
      }
    }
    const ended = (result: unknown): void => {
      over = true
      try {
        requireAssertion('the final assertion', result)
      } catch (error) {
        failed(error)
      }
    }
    this.host.context.run(FINAL, () => settle(() => final({ results: this.results }), ended, failed))
    this.drain()
    this.goOn(() => over)
    if (!over && !this.stopped) this.fault = this.stuck(['the final assertion'])
  }

  /** Lets events happen until `isOver`. */
  private goOn(isOver: () => boolean): void {
    const { agenda, limits, host } = this
    while (!this.stopped && !isOver()) {
      const next = agenda.next()
      if (next.length === 0) return
      if (this.steps >= limits.steps) {
        this.cut = true
        if (this.steps >= 2 * limits.steps) {
          this.fault = this.endless()
          return
        }
      }
      // Past the limit the oldest event comes first: if the execution can end at all, it ends then.
      const at =
        next.length === 1 || this.cut
          ? 0
          : this.choose(next.length, next.map(({ signature }) => signature).join('|'))
      const event = next[at]
      agenda.take(event)
      this.witness?.happens(event)
      host.context.run(event.task, () => {
        try {
          event.happen()
        } catch (error) {
          this.uncaught(error, 'uncaught exception')
        }
      })
      this.drain()
      this.watch(event)
    }
  }

  private drain(): void {
    this.host.drain(error => this.uncaught(error, 'uncaught exception'))
  }

  private watch(event?: AsyncEvent): void {
    const { always } = this.program as AsyncProgram
    if (always === undefined || this.stopped) return
    try {
      requireAssertion('`always`', always())
    } catch (error) {
      if (error instanceof CheckError) this.refuse(error)
      const when =
        event === undefined ? 'after the set-up' : `after "${event.name}" of ${this.nameOf(event.task)}`
      this.fault = {
        kind: 'assertion',
        title: `an invariant does not hold ${when}: ${messageOf(error)}`,
        detail: [],
        error,
      }
    }
  }

  /** All tasks have ended, and no pending event keeps the execution open. */
  private isOver(): boolean {
    return this.ended.every(ended => ended) && !this.agenda.pending.some(({ keeps }) => keeps)
  }

  private stuck(open: readonly string[]): Fault {
    return {
      kind: 'deadlock',
      title: `deadlock: ${open.join(', ')} ${open.length === 1 ? 'waits' : 'wait'} for a promise that never settles: no event is pending that could settle it`,
      detail: [
        'A promise of the real world (a connection made before the check, a module that is still loading) never settles inside a check: give it with `io`.',
      ],
      error: undefined,
    }
  }

  private endless(): Fault {
    const last = new Set(this.agenda.happened.slice(this.limits.steps))
    const busy = [...last].map(text =>
      text.replace(/^(-?\d+) /, (_, task: string) => `${this.nameOf(Number(task))}: `),
    )
    return {
      kind: 'livelock',
      title: `livelock: the execution has not ended after ${this.steps} events`,
      detail: [
        `Repeated events: ${busy.slice(0, 4).join('; ')}`,
        'If the check is only long, raise `steps`; if a loop has no end, bound it, or `unref` the timer of one that runs in the background.',
      ],
      error: undefined,
    }
  }
}

const { then } = Promise.prototype

/** Calls a function that may return a promise, and one of the two callbacks when the result is settled. */
function settle(
  body: () => unknown,
  fulfilled: (value: unknown) => void,
  rejected: (error: unknown) => void,
): void {
  let value: unknown
  try {
    value = body()
  } catch (error) {
    rejected(error)
    return
  }
  const thenable =
    (typeof value === 'object' || typeof value === 'function') && value !== null && 'then' in value
  if (thenable) Reflect.apply(then, Promise.resolve(value), [fulfilled, rejected])
  else fulfilled(value)
}

function isAssertion(error: unknown): boolean {
  const { name, code } = (error ?? {}) as { name?: unknown; code?: unknown }
  return code === 'ERR_ASSERTION' || (typeof name === 'string' && name.includes('Assertion'))
}

const SHOWN_MAX = 40

/** A short text for a value. */
export function show(value: unknown): string {
  if (typeof value === 'string') return clip(JSON.stringify(value))
  if (typeof value === 'bigint') return `${value}n`
  if (typeof value === 'function') return `function ${value.name}`
  if (typeof value !== 'object' || value === null) return String(value)
  if (value instanceof Error) return clip(`${value.name}: ${messageOf(value)}`)
  try {
    const plain = Array.isArray(value) || [Object.prototype, null].includes(Object.getPrototypeOf(value))
    const name = plain ? '' : `${value.constructor?.name} `
    const text =
      value instanceof Map || value instanceof Set ? JSON.stringify([...value]) : JSON.stringify(value)
    return clip(`${name}${text}`)
  } catch {
    return 'an object'
  }
}

function clip(text: string): string {
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX - 1)}…` : text
}
