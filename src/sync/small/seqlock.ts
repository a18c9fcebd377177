import { checkOptions, type Kinds } from '../../coroutine/core/knownoptions.ts'
import { currentFutexes } from '../../futex/core/currentfutexes.ts'
import { awaitOwner } from '../../futex/recovery/awaitowner.ts'
import { checkCount } from '../wait/errors.ts'
import { currentTid } from '../wait/caller.ts'
import {
  handleOf,
  openHandle,
  type OwnPlace,
  type ObjectWords,
  wordsFor,
  ownPlaceKinds,
  type SyncHandle,
} from '../wait/objectwords.ts'

/**
 * A record of 32-bit words. Readers read it consistently and never wait for a writer, not even for one that
 * stopped in the middle of a write.
 *
 *   0        sequence  counts half-writes
 *   1        writer    the TID of the writer, or 0
 *   2        next      the TID of the waiting writer that is next, or 0
 *   3        age       the arrival number of that writer
 *   4        arrivals  counts writers that had to wait
 *   6 …      copy 0
 *   6 + n …  copy 1
 *
 *   writer                              reader
 *   ------                              ------
 *   sequence 0 → 1: readers use copy 1  (A) reads the sequence; its lowest bit names the stable copy
 *   changes copy 0                      (B) reads that copy
 *   sequence 1 → 2: readers use copy 0  (C) reads the sequence again: as at (A), the record is consistent
 *   makes copy 1 the same
 *
 * A writer changes a copy only after the sequence has sent readers to the other one, and (C) sees that. So a
 * reader repeats its read only when a write began or ended meanwhile. If the writer stops anywhere, readers
 * read the last complete record.
 *
 * A writer that finds another writer waits. Only `next` may follow the current writer, and a writer that
 * arrived earlier replaces one that arrived later as `next`. So a writer that writes repeatedly does not pass
 * a waiting writer for longer than that one takes to wake up.
 *
 * A writer that finds a dead writer replaces it. If the sequence is odd, readers use copy 1 already; if it is
 * even, copy 1 may be half written, and is made equal to copy 0 before any reader uses it.
 */
const SEQUENCE = 0
const WRITER = 1
const NEXT = 2
const AGE = 3
const ARRIVALS = 4
const HEADER_WORDS = 6

export interface SeqLockOptions extends OwnPlace {
  /** How many 32-bit words the record has. */
  readonly fields: number
}

const seqLockKinds: Kinds<SeqLockOptions> = { ...ownPlaceKinds, fields: 'checked' }

export class SeqLock implements ObjectWords {
  readonly i32: Int32Array<SharedArrayBuffer>
  readonly at: number
  readonly fields: number

  constructor(options: SeqLockOptions) {
    checkOptions('new SeqLock(options)', options, seqLockKinds)
    checkCount('new SeqLock({ fields })', options.fields, 1, 1 << 20)
    const { i32, at } = wordsFor('SeqLock', SeqLock.words(options.fields), options)
    this.i32 = i32
    this.at = at
    this.fields = options.fields
  }

  static words(fields: number): number {
    return HEADER_WORDS + 2 * fields
  }

  static from(handle: SyncHandle): SeqLock {
    const { place, options } = openHandle('SeqLock', handle)
    return new SeqLock({ fields: options['fields'] as number, buffer: place.i32.buffer, index: place.at })
  }

  /** For `postMessage`; the receiver calls `SeqLock.from`. */
  get handle(): SyncHandle {
    return handleOf('SeqLock', this, { fields: this.fields })
  }

  /** What `console.log` and JSON show of it. */
  toJSON(): { readonly fields: number } {
    return { fields: this.fields }
  }

  /** Its memory: pass it to the constructor on another thread. */
  get place(): { readonly buffer: SharedArrayBuffer; readonly index: number; readonly fields: number } {
    return { buffer: this.i32.buffer, index: this.at, fields: this.fields }
  }

  /** Reads the record into `into`. Never waits. */
  read(into: { [index: number]: number } = new Int32Array(this.fields)): ArrayLike<number> {
    const { i32, at, fields } = this
    for (;;) {
      const sequence = Atomics.load(i32, at + SEQUENCE) // (A)
      const copy = at + HEADER_WORDS + (sequence & 1) * fields
      for (let field = 0; field < fields; field++) into[field] = Atomics.load(i32, copy + field) // (B)
      if (Atomics.load(i32, at + SEQUENCE) === sequence) return into as ArrayLike<number> // (C)
    }
  }

  /** Replaces the record. Writers exclude each other: a writer waits until the one before it has ended. */
  write(record: ArrayLike<number>): void {
    if (record.length !== this.fields) {
      throw new RangeError(`write: a record of ${record.length} words, and this one has ${this.fields}`)
    }
    const { i32, at } = this
    const tid = currentTid()
    const isFree =
      Atomics.load(i32, at + NEXT) === 0 && Atomics.compareExchange(i32, at + WRITER, 0, tid) === 0
    if (!isFree) this.becomeWriter(tid)
    try {
      if ((Atomics.load(i32, at + SEQUENCE) & 1) === 0) Atomics.add(i32, at + SEQUENCE, 1)
      this.copy(record, 0)
      Atomics.add(i32, at + SEQUENCE, 1)
      this.copy(record, 1)
    } catch (error) {
      // Reading the caller's record may throw, or the stack is full.
      this.repair()
      this.endWriting()
      throw error
    }
    this.endWriting()
  }

  private endWriting(): void {
    const { i32, at } = this
    Atomics.store(i32, at + WRITER, 0)
    if (Atomics.load(i32, at + NEXT) !== 0) Atomics.notify(i32, at + WRITER)
  }

  private becomeWriter(tid: number): void {
    const { i32, at } = this
    const { context } = currentFutexes()
    const age = Atomics.add(i32, at + ARRIVALS, 1)
    for (;;) {
      const next = Atomics.load(i32, at + NEXT)
      if (next !== tid) {
        if (next === 0 || ((age - Atomics.load(i32, at + AGE)) | 0) < 0) {
          if (Atomics.compareExchange(i32, at + NEXT, next, tid) === next) Atomics.store(i32, at + AGE, age)
        } else if (awaitOwner(context, i32, at + NEXT, next, next)) {
          Atomics.compareExchange(i32, at + NEXT, next, 0)
        }
        continue
      }
      const writer = Atomics.load(i32, at + WRITER)
      // Its own TID: in an earlier call the stack was too full to give up.
      if (writer !== 0 && writer !== tid && !awaitOwner(context, i32, at + WRITER, writer, writer)) continue
      if (Atomics.compareExchange(i32, at + WRITER, writer, tid) !== writer) continue
      if (Atomics.compareExchange(i32, at + NEXT, tid, 0) === tid) Atomics.notify(i32, at + NEXT)
      if (writer !== 0) this.repair()
      return
    }
  }

  /**
   * After a writer that died, or gave up: readers see the old record, or the new one, and both copies are
   * whole.
   */
  private repair(): void {
    const { i32, at, fields } = this
    if ((Atomics.load(i32, at + SEQUENCE) & 1) !== 0) return
    const copy = at + HEADER_WORDS
    for (let field = 0; field < fields; field++) {
      Atomics.store(i32, copy + fields + field, Atomics.load(i32, copy + field))
    }
  }

  private copy(record: ArrayLike<number>, which: number): void {
    const { i32, at, fields } = this
    const copy = at + HEADER_WORDS + which * fields
    for (let field = 0; field < fields; field++) Atomics.store(i32, copy + field, record[field])
  }
}
