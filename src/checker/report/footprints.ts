/** The words that an execution touches, their values, and which steps conflict: for a picture of it. */
import { CHANGED } from '../machine/eventlog.ts'
import type { Machine } from '../machine/machine.ts'
import { DATAVIEW_READ, DATAVIEW_WRITE, LOCK, NOTIFY, UNLOCK, WAIT_ASYNC } from '../machine/operations.ts'
import { pending } from '../machine/pending.ts'
import { type StepObserver, targetOf } from './recording.ts'

/** A word of shared memory, or a mutex of the checker. */
export interface ExecutionWord {
  /** As the source names it, at the first access. */
  readonly name: string
  /** Its value before the first step. */
  readonly initial: string
}

/** The part of a step that shared memory shows. */
export interface Footprint {
  /** The word that the step touched, as a position in the list of words; -1 when it touched none. */
  readonly word: number
  /** The value of the word after the step. */
  readonly value: string
  readonly changed: boolean
  /**
   * Earlier steps of other threads that conflict with this one: both touch a common word, and one writes it.
   * A conflict that follows from others is left out.
   */
  readonly after: readonly number[]
}

export class Footprints implements StepObserver {
  readonly words: ExecutionWord[] = []
  readonly steps: Footprint[] = []
  private readonly machine: Machine
  private readonly wordOf = new Map<string, number>()
  /** The step that is performed now. */
  private word = -1
  private read: (() => unknown) | undefined
  /** Per step: the number of steps of each thread that happen before it, or are it. */
  private readonly clocks: Int32Array[] = []

  constructor(machine: Machine) {
    this.machine = machine
  }

  before(thread: number): void {
    const kind = pending.kind[thread]
    const view = pending.view[thread]
    const index = pending.index[thread]
    this.read = readerOf(kind, view, index, pending.b[thread])
    this.word = -1
    if (this.read === undefined) return
    const mutex = kind === LOCK || kind === UNLOCK
    const key = mutex
      ? `m${this.machine.from2[thread]}`
      : `${this.machine.from[thread]}-${this.machine.to[thread]}`
    const known = this.wordOf.get(key)
    if (known !== undefined) {
      this.word = known
      return
    }
    this.word = this.words.length
    this.wordOf.set(key, this.word)
    const site = pending.site[thread]
    const text = site >= 0 ? (pending.siteText[site] ?? '') : ''
    const name = targetOf(kind, text, view, typeof index === 'number' ? index : -1)
    this.words.push({ name: mutex ? this.mutexName() : name, initial: this.show() })
  }

  after(at: number): void {
    const { log } = this.machine
    const value =
      this.word < 0 ? '' : log.kind[at] === LOCK ? this.machine.names[log.thread[at]] : this.show()
    const changed = (log.flags[at] & CHANGED) !== 0 || log.kind[at] === LOCK || log.kind[at] === UNLOCK
    this.steps.push({ word: this.word, value, changed, after: this.conflictsOf(at) })
  }

  private mutexName(): string {
    const others = this.words.filter(({ name }) => name.startsWith('mutex')).length
    return others === 0 ? 'mutex' : `mutex ${others + 1}`
  }

  private show(): string {
    const value = this.read?.()
    return typeof value === 'bigint' ? `${value}n` : String(value)
  }

  private conflictsOf(at: number): number[] {
    const { log, threads } = this.machine
    const own = log.thread[at]
    const clock = new Int32Array(threads)
    const ordinals = log.ordinal
    for (let i = at - 1; i >= 0; i--) {
      if (log.thread[i] !== own) continue
      clock.set(this.clocks[i])
      break
    }
    const found: number[] = []
    const follow = (i: number): void => {
      found.push(i)
      for (let t = 0; t < threads; t++) clock[t] = Math.max(clock[t], this.clocks[i][t])
    }
    const waker = log.enabledBy[at]
    if (waker >= 0 && clock[log.thread[waker]] < ordinals[waker]) follow(waker)
    for (let i = at - 1; i >= 0; i--) {
      const other = log.thread[i]
      if (other !== own && clock[other] < ordinals[i] && log.conflict(i, at)) follow(i)
    }
    clock[own] = ordinals[at]
    this.clocks.push(clock)
    return found.toReversed()
  }
}

/** Reads the word that an operation touches, without a step. Undefined when it touches none. */
function readerOf(kind: number, view: unknown, index: unknown, b: unknown): (() => unknown) | undefined {
  if (kind === LOCK || kind === UNLOCK) return () => 'free'
  if (typeof index !== 'number' || !ArrayBuffer.isView(view)) return undefined
  if (kind === DATAVIEW_READ || kind === DATAVIEW_WRITE) {
    const [method, littleEndian] = b as [string, unknown]
    const getter = `get${method.slice(3)}`
    return () =>
      (view as unknown as Record<string, (...args: unknown[]) => unknown>)[getter](index, littleEndian)
  }
  // A notify touches the list of waiters, and not the word.
  if (kind > WAIT_ASYNC || kind === NOTIFY) return undefined
  return () => (view as unknown as Record<number, unknown>)[index]
}
