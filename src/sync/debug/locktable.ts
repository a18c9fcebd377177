import type { FutexContext } from '../../futex/core/context.ts'
import { lockObject, unlockObject } from '../wait/objectlock.ts'
import { underLock } from '../wait/underlock.ts'

/**
 * The table of debug mode, in the domain's arena, for all its threads: one record for each hold and for each
 * wait. One lock guards it, and no thread sleeps under that lock.
 *
 *   word 0        the lock (objectlock.ts)
 *   word 1        1: debug mode is on in this domain; 2: and a wait that would complete a deadlock throws
 *   from word 16  records
 */
const ON = 1
const THROWS = 2
const FIRST = 16

const USE = 0
const OBJECT = 1
const TID = 2
const REPORTED = 3
const KIND = 4
const KIND_WORDS = 4
const NAME = 8
const NAME_WORDS = 16
const WHO = 24
const WHO_WORDS = 16
const STACK = 40
const STACK_WORDS = 216
const RECORD_WORDS = 256

const FREE = 0
const HELD = 1
const WAITS = 2

/** A hold or a wait, read from the table. */
export interface TableEntry {
  readonly at: number
  readonly object: number
  readonly tid: number
  readonly kind: string
  readonly name: string | undefined
  readonly who: string
  readonly stack: string
}

export interface NewEntry {
  readonly object: number
  readonly tid: number
  readonly kind: string
  readonly name: string | undefined
  readonly who: string
  readonly stack: string
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** All methods are called inside `locked`, except those that turn debug mode on or off, or check it. */
export class LockTable {
  private readonly context: FutexContext
  private readonly i32: Int32Array<SharedArrayBuffer>
  private readonly u8: Uint8Array<SharedArrayBuffer>
  private readonly start: number
  private readonly records: number

  constructor(context: FutexContext) {
    const { lockTable } = context.layout
    this.context = context
    this.i32 = context.i32
    this.u8 = context.arena.u8
    this.start = lockTable.start
    this.records = Math.floor((lockTable.words - FIRST) / RECORD_WORDS)
  }

  static isOn({ i32, layout }: FutexContext): boolean {
    return Atomics.load(i32, layout.lockTable.start + ON) !== 0
  }

  /** Whether debug mode is on and throws. */
  static throws({ i32, layout }: FutexContext): boolean {
    return Atomics.load(i32, layout.lockTable.start + ON) === THROWS
  }

  /** Clears the records from before the last turnOff: they are out of date. */
  turnOn(throws: boolean = false): void {
    this.locked(() => {
      if (Atomics.exchange(this.i32, this.start + ON, throws ? THROWS : 1) !== 0) return
      for (let record = 0; record < this.records; record++) {
        this.i32[this.start + FIRST + record * RECORD_WORDS + USE] = FREE
      }
    })
  }

  turnOff(): void {
    Atomics.store(this.i32, this.start + ON, 0)
  }

  locked<T>(fn: () => T): T {
    const place = { i32: this.i32, at: this.start }
    lockObject(this.context, place)
    return underLock(fn, () => unlockObject(this.context, place))
  }

  addHold(entry: NewEntry): void {
    this.add(HELD, entry)
  }

  addWait(entry: NewEntry): void {
    this.add(WAITS, entry)
  }

  removeHold(object: number, tid: number): void {
    this.remove(HELD, object, tid)
  }

  removeWait(object: number, tid: number): void {
    this.remove(WAITS, object, tid)
  }

  holds(): TableEntry[] {
    return this.entries(HELD)
  }

  waits(): TableEntry[] {
    return this.entries(WAITS)
  }

  /**
   * The records as they are now, without the lock of the table: for a thread that must not wait. A record
   * that changes while it is read is left out.
   */
  readNow(): { holds: TableEntry[]; waits: TableEntry[] } {
    const isSame = ({ at, object, tid }: TableEntry, use: number): boolean =>
      this.i32[at + USE] === use && this.i32[at + OBJECT] === object && this.i32[at + TID] === tid
    return {
      holds: this.holds().filter(entry => isSame(entry, HELD)),
      waits: this.waits().filter(entry => isSame(entry, WAITS)),
    }
  }

  /** True for the first call with this hold. */
  markReported({ at }: TableEntry): boolean {
    const first = this.i32[at + REPORTED] === 0
    this.i32[at + REPORTED] = 1
    return first
  }

  /** When the table is full, the entry is dropped: debug mode must not fail a lock. */
  private add(use: number, { object, tid, kind, name, who, stack }: NewEntry): void {
    const { i32 } = this
    for (let record = 0; record < this.records; record++) {
      const at = this.start + FIRST + record * RECORD_WORDS
      if (i32[at + USE] !== FREE) continue
      i32[at + OBJECT] = object
      i32[at + TID] = tid
      i32[at + REPORTED] = 0
      this.write(at + KIND, KIND_WORDS, kind)
      this.write(at + NAME, NAME_WORDS, name ?? '')
      this.write(at + WHO, WHO_WORDS, who)
      this.write(at + STACK, STACK_WORDS, stack)
      i32[at + USE] = use
      return
    }
  }

  private remove(use: number, object: number, tid: number): void {
    const { i32 } = this
    for (let record = this.records - 1; record >= 0; record--) {
      const at = this.start + FIRST + record * RECORD_WORDS
      if (i32[at + USE] !== use || i32[at + OBJECT] !== object || i32[at + TID] !== tid) continue
      i32[at + USE] = FREE
      return
    }
  }

  private entries(use: number): TableEntry[] {
    const { i32 } = this
    const found: TableEntry[] = []
    for (let record = 0; record < this.records; record++) {
      const at = this.start + FIRST + record * RECORD_WORDS
      if (i32[at + USE] !== use) continue
      const name = this.read(at + NAME)
      found.push({
        at,
        object: i32[at + OBJECT],
        tid: i32[at + TID],
        kind: this.read(at + KIND),
        name: name === '' ? undefined : name,
        who: this.read(at + WHO),
        stack: this.read(at + STACK),
      })
    }
    return found
  }

  /** The length and the UTF-8 bytes of a text, cut to the room for it. */
  private write(at: number, words: number, text: string): void {
    const bytes = encoder.encode(text).subarray(0, (words - 1) * 4)
    this.i32[at] = bytes.length
    this.u8.set(bytes, (at + 1) * 4)
  }

  private read(at: number): string {
    return decoder.decode(this.u8.slice((at + 1) * 4, (at + 1) * 4 + this.i32[at]))
  }
}
