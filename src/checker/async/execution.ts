import { CheckError } from '../errors.ts'
import { messageOf } from '../report/failure.ts'
import { Agenda, type AsyncEvent, type NewEvent } from './agenda.ts'
import type { Host } from './host.ts'
import { type AsyncProgram, type AsyncSetup, type AsyncTask, type Outside, tasksOf } from './program.ts'

/** Which of the possible next events comes. */
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

/** What went wrong in an execution. */
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

/** The code that makes something is in no task: it is the set-up, or the final assertion. */
export const SETUP = -1
export const FINAL = -2
/** The console: it is the runner's, not the program's. */
export const EXEMPT = -3

/**
 * One run of the program, from the set-up to where nothing is pending. Events come one at a time, as the
 * chooser says; after each, microtasks and ticks run to their end, in the order that the language and Node
 * give them.
 */
export class Execution {
  readonly agenda: Agenda
  readonly host: Host
  readonly names: string[] = []
  /** What was possible, each time that something was chosen. */
  readonly trace: string[] = []
  /** What each task came to. */
  readonly outcomes: string[] = []
  /** Why this execution does not stand for all of its order. */
  readonly notes: Set<string> = new Set()
  fault: Fault | undefined
  /** The program did what cannot be explored. */
  refusal: CheckError | undefined
  /** Whether it was cut at the limit of steps. */
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

  /** Events that have happened. */
  get steps(): number {
    return this.agenda.happened.length
  }

  /** The task whose code runs. */
  get task(): number {
    const task = this.host.context.getStore() ?? SETUP
    return task === EXEMPT ? SETUP : task
  }

  nameOf(task: number): string {
    return task === SETUP ? 'the set-up' : task === FINAL ? 'the final assertion' : this.names[task]
  }

  /** Something will happen. */
  add(event: NewEvent): AsyncEvent {
    const added = this.agenda.add(event)
    this.witness?.made(added)
    return added
  }

  choose(options: number, among: string): number {
    this.trace.push(among)
    return this.chooser.pick(options, among)
  }

  /** One of some numbers, each of which is tried. */
  oneOf(values: number | readonly number[], what: string): number {
    const all = typeof values === 'number' ? [values] : values
    return all.length === 1 ? all[0] : all[this.choose(all.length, `${what} ${all.join(' or ')}`)]
  }

  refuse(error: CheckError): CheckError {
    this.refusal ??= error
    return error
  }

  /** What nothing caught. */
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
      const text = `the set-up of the check threw: ${messageOf(error)}. It runs before every execution and must succeed each time; what may fail belongs into a task or the final assertion`
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
    this.host.context.run(FINAL, () =>
      settle(
        () => final({ results: this.results }),
        () => {
          over = true
        },
        error => {
          over = true
          if (error instanceof CheckError) this.refuse(error)
          this.fault ??= {
            kind: 'assertion',
            title: `the final assertion failed: ${messageOf(error)}`,
            detail: [],
            error,
          }
        },
      ),
    )
    this.drain()
    this.goOn(() => over)
    if (!over && !this.stopped) this.fault = this.stuck(['the final assertion'])
  }

  /** Events come until it is over. */
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
      // Beyond the limit whatever is oldest comes first: an execution that ends at all ends so.
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
      always()
    } catch (error) {
      if (error instanceof CheckError) this.refuse(error)
      const when =
        event === undefined ? 'after the set-up' : `after "${event.name}" of ${this.nameOf(event.task)}`
      this.fault = {
        kind: 'assertion',
        title: `what must always hold does not, ${when}: ${messageOf(error)}`,
        detail: [],
        error,
      }
    }
  }

  /** All tasks have ended, and what is pending keeps nothing open. */
  private isOver(): boolean {
    return this.ended.every(ended => ended) && !this.agenda.pending.some(({ keeps }) => keeps)
  }

  private stuck(open: readonly string[]): Fault {
    return {
      kind: 'deadlock',
      title: `deadlock: ${open.join(', ')} ${open.length === 1 ? 'waits' : 'wait'} for what never comes: nothing is pending that could settle it`,
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
      title: `livelock: after ${this.steps} events it still goes on`,
      detail: [
        `Over and over: ${busy.slice(0, 4).join('; ')}`,
        'If the check is only long, raise `steps`; if a loop has no end, bound it, or `unref` the timer of one that runs in the background.',
      ],
      error: undefined,
    }
  }
}

const { then } = Promise.prototype

/** Calls what may return a promise; one of the two is called when it has settled. */
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

/** A value in a few words. */
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
