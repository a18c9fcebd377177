import type { ArenaPlan, Region } from '../../arena/memory/arena.ts'

/**
 * Why tasks that should move cannot yet, as text, for `task.status`. A small table in the arena: the entry of
 * a job is found by the number of its record, and the last job to write there has it. A text that is missing
 * or belongs to another job costs nothing but the text.
 *
 *   writer, a CPU                              reader
 *   -------------                              ------
 *   (A) version: even -> its own mark          (D) reads the version: even
 *   (B) writes the job's number and the text   reads number and text
 *   (C) version: mark -> the next even         (E) the version is still that; the number is the job's
 *
 * A CPU that finds the mark of another writes nothing. The mark of a dead CPU is cleared by recovery.
 */
const ENTRIES = 64
const ENTRY_WORDS = 48
const VERSION = 0
const NUMBER = 1
const LENGTH = 2
const TEXT = 3
const TEXT_BYTES = (ENTRY_WORDS - TEXT) * 4

export function reserveObstacles(plan: ArenaPlan): Region {
  return plan.reserve('obstacles', ENTRIES * ENTRY_WORDS)
}

export class Obstacles {
  private readonly i32: Int32Array
  private readonly start: number

  constructor(i32: Int32Array, region: Region) {
    this.i32 = i32
    this.start = region.start
  }

  /** On CPU `cpu`. `index`: of the job's record. */
  write(cpu: number, index: number, number: number, text: string): void {
    const { i32 } = this
    const at = this.entry(index)
    const version = Atomics.load(i32, at + VERSION)
    const mark = -(2 * cpu + 1)
    if ((version & 1) !== 0 || Atomics.compareExchange(i32, at + VERSION, version, mark) !== version) return // (A)
    const bytes = new TextEncoder().encode(text).subarray(0, TEXT_BYTES)
    Atomics.store(i32, at + NUMBER, number) // (B)
    Atomics.store(i32, at + LENGTH, bytes.length)
    for (let word = 0; word * 4 < bytes.length; word++) {
      let packed = 0
      for (let byte = 0; byte < 4; byte++) packed |= (bytes[word * 4 + byte] ?? 0) << (8 * byte)
      Atomics.store(i32, at + TEXT + word, packed)
    }
    Atomics.store(i32, at + VERSION, (version + 2) & 0x3fff_ffff) // (C)
  }

  /** From any thread. Null: no text of this job. */
  read(index: number, number: number): string | null {
    const { i32 } = this
    const at = this.entry(index)
    const version = Atomics.load(i32, at + VERSION) // (D)
    if ((version & 1) !== 0 || Atomics.load(i32, at + NUMBER) !== number) return null
    const length = Math.min(TEXT_BYTES, Atomics.load(i32, at + LENGTH))
    const bytes = new Uint8Array(length)
    for (let byte = 0; byte < length; byte++) {
      bytes[byte] = (Atomics.load(i32, at + TEXT + (byte >> 2)) >>> (8 * (byte & 3))) & 0xff
    }
    if (Atomics.load(i32, at + VERSION) !== version) return null // (E)
    return new TextDecoder().decode(bytes)
  }

  /** Recovery: the CPU died between (A) and (C). */
  recover(dead: number): void {
    for (let index = 0; index < ENTRIES; index++)
      Atomics.compareExchange(this.i32, this.entry(index) + VERSION, -(2 * dead + 1), 0)
  }

  private entry(index: number): number {
    return this.start + (index % ENTRIES) * ENTRY_WORDS
  }
}
