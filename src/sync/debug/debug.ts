import { checkOptions, type Kinds } from '../../coroutine/core/knownoptions.ts'
import { currentFutexes } from '../../futex/core/currentfutexes.ts'
import type { FutexContext } from '../../futex/core/context.ts'
import { findOwner } from '../../futex/core/owner.ts'
import { hostPlatform } from '../../machine/core/platform.ts'
import { here } from '../../kernel/cpu/here.ts'
import { callSite } from './callsite.ts'
import { SyncError } from '../wait/errors.ts'
import { LockTable, type TableEntry } from './locktable.ts'
import { indent, lockName, tell } from './holderwatch.ts'
import { type LockObserver, observer, setObserver } from './observer.ts'
import { coroutineHasEnded } from '../wait/caller.ts'
import type { ObjectWords } from '../wait/objectwords.ts'
import { ParkingQueue } from '../wait/queue.ts'
import { callerName } from './callername.ts'

/** A lock with its holders and its waiters. */
export interface LockInfo {
  readonly id: number
  readonly kind: string
  readonly name: string | undefined
  readonly holders: readonly PartyInfo[]
  readonly waiters: readonly PartyInfo[]
}

export interface PartyInfo {
  readonly tid: number
  /** A task, a coroutine, a thread or async code, by name where it has one. */
  readonly who: string
  /** Where it took the lock, or waits for it. */
  readonly stack: string
  /** It ended without unlocking. */
  readonly ended: boolean
}

export interface LockReport {
  readonly problem: 'deadlock' | 'held by one that ended'
  /** The report as text: the waiters, the holders, and their stacks. */
  readonly message: string
}

export interface DebugOptions {
  /** Called once for each problem. Without it, problems are warnings of the process. */
  readonly onProblem?: (report: LockReport) => void
  /** A call that would complete a deadlock throws instead of waiting for ever. */
  readonly throws?: boolean
}

const debugKinds: Kinds<DebugOptions> = { onProblem: 'function', throws: 'boolean' }

const ENDED_CHECK_MS = 100

/**
 * Debug mode, for all threads of the domain: from here on, the table has each holder and each waiter with
 * their stacks. The wait that completes a deadlock reports it. A lock whose holder has ended is reported by a
 * waiter, or within a tenth of a second by the thread that turned debug mode on. It makes locks slow. Other
 * threads join when they next create or receive an object, and leave at the next lock after debug mode was
 * turned off. Returns a function that turns it off.
 */
export function debugLocks(options: DebugOptions = {}): () => void {
  checkOptions('debugLocks(options)', options, debugKinds)
  const watching = new Watching(currentFutexes().context, options)
  watching.table.turnOn(options.throws === true)
  setObserver(watching)
  const timer = setInterval(() => watching.findEnded(), ENDED_CHECK_MS)
  ;(timer as { unref?: () => void }).unref?.()
  return () => {
    clearInterval(timer)
    watching.table.turnOff()
    if (observer === watching) setObserver(null)
  }
}

/** Every lock that has a holder or a waiter. Debug mode must be on. */
export function locks(): LockInfo[] {
  const { context } = currentFutexes()
  if (!LockTable.isOn(context)) {
    throw new Error('locks(): the holders of locks are recorded in debug mode only; call debugLocks() first')
  }
  const table = new LockTable(context)
  const { holds, waits } = table.locked(() => ({ holds: table.holds(), waits: table.waits() }))
  const ids = [...new Set([...holds, ...waits].map(({ object }) => object))]
  const infoOf = ({ tid, who, stack }: TableEntry): PartyInfo => ({
    tid,
    who,
    stack,
    ended: hasEnded(context, tid),
  })
  return ids.map(id => {
    const of = (entries: readonly TableEntry[]): TableEntry[] => entries.filter(({ object }) => object === id)
    const [first] = [...of(holds), ...of(waits)]
    return {
      id,
      kind: first.kind,
      name: first.name,
      holders: of(holds).map(infoOf),
      waiters: of(waits).map(infoOf),
    }
  })
}

/** An object was created or received on this thread: if the domain is in debug mode, the thread joins. */
export function joinDebugMode(): void {
  if (observer !== null) return
  const context = here.futexes?.context
  if (context !== undefined && LockTable.isOn(context)) {
    setObserver(new Watching(context, { throws: LockTable.throws(context) }))
  }
}

class Watching implements LockObserver {
  readonly table: LockTable
  private readonly context: FutexContext
  private readonly options: DebugOptions

  constructor(context: FutexContext, options: DebugOptions) {
    this.context = context
    this.table = new LockTable(context)
    this.options = options
  }

  acquired(words: ObjectWords, kind: string, name: string | undefined, tid: number): void {
    if (this.isOver()) return
    const object = this.idOf(words)
    const entry = { object, tid, kind, name, who: callerName(tid), stack: callSite() }
    this.table.locked(() => this.table.addHold(entry))
  }

  released(words: ObjectWords, tid: number): void {
    if (this.isOver()) return
    const object = this.idOf(words)
    this.table.locked(() => this.table.removeHold(object, tid))
  }

  waits(words: ObjectWords, kind: string, name: string | undefined, tid: number): void {
    if (this.isOver()) return
    const object = this.idOf(words)
    const entry = { object, tid, kind, name, who: callerName(tid), stack: callSite() }
    const found = this.table.locked(() => {
      this.table.addWait(entry)
      const holds = this.table.holds()
      const waits = this.table.waits()
      const ended = holds.filter(
        hold => hold.object === object && hasEnded(this.context, hold.tid) && this.table.markReported(hold),
      )
      return { cycle: cycleThrough(object, tid, holds, waits), ended }
    })
    for (const hold of found.ended)
      this.report({ problem: 'held by one that ended', message: endedMessage(hold) })
    if (found.cycle === null) return
    const message = cycleMessage(found.cycle)
    this.report({ problem: 'deadlock', message })
    if (this.options.throws !== true) return
    this.table.locked(() => this.table.removeWait(object, tid))
    throw new SyncError('ERR_HEDDLE_DEADLOCK', message)
  }

  waited(words: ObjectWords, tid: number): void {
    if (this.isOver()) return
    const object = this.idOf(words)
    this.table.locked(() => this.table.removeWait(object, tid))
  }

  findEnded(): void {
    const ended = this.table.locked(() =>
      this.table.holds().filter(hold => hasEnded(this.context, hold.tid) && this.table.markReported(hold)),
    )
    for (const hold of ended) this.report({ problem: 'held by one that ended', message: endedMessage(hold) })
  }

  /** Whether debug mode was turned off, on any thread: then this thread leaves it. */
  private isOver(): boolean {
    if (LockTable.isOn(this.context)) return false
    if (observer === this) setObserver(null)
    return true
  }

  private idOf(words: ObjectWords): number {
    return new ParkingQueue(words).objectId(currentFutexes().context)
  }

  private report(report: LockReport): void {
    const { onProblem } = this.options
    if (report.problem === 'deadlock' && (onProblem === undefined || here.view !== null)) tell(report.message)
    if (onProblem !== undefined) onProblem(report)
    else if (report.problem !== 'deadlock') hostPlatform().warn?.(report.message)
  }
}

/** A wait for a lock, and a hold of it. */
interface Link {
  readonly wait: TableEntry
  readonly hold: TableEntry
}

/**
 * The cycle that the wait of `tid` for the object completes: each waits for a lock that the next one holds.
 */
function cycleThrough(
  object: number,
  tid: number,
  holds: readonly TableEntry[],
  waits: readonly TableEntry[],
): Link[] | null {
  const seen = new Set<number>()
  const follow = (waiter: number, wanted: number): Link[] | null => {
    const wait = waits.find(entry => entry.tid === waiter && entry.object === wanted)
    if (wait === undefined || seen.has(waiter)) return null
    seen.add(waiter)
    for (const hold of holds.filter(entry => entry.object === wanted)) {
      if (hold.tid === tid) return [{ wait, hold }]
      for (const next of waits.filter(entry => entry.tid === hold.tid)) {
        const rest = follow(hold.tid, next.object)
        if (rest !== null) return [{ wait, hold }, ...rest]
      }
    }
    return null
  }
  return follow(tid, object)
}

function cycleMessage(cycle: readonly Link[]): string {
  const lines = cycle.map(
    ({ wait, hold }) =>
      `${wait.who} waits for ${lockName(wait)}, at\n${indent(wait.stack)}\n  which ${hold.who} holds since\n${indent(hold.stack)}`,
  )
  return `deadlock: each of these waits for the next, and the last for the first\n${lines.join('\n')}`
}

function endedMessage(hold: TableEntry): string {
  return `${lockName(hold)} is held by ${hold.who}, which has ended without unlocking it. It was locked at\n${indent(hold.stack)}`
}

function hasEnded(context: FutexContext, tid: number): boolean {
  return findOwner(context, tid) === 0 || coroutineHasEnded(tid)
}
