import {
  ARGUMENT_LARGE,
  ARGUMENT_SHIFT,
  BUFFER,
  BUFFER_FAR,
  LATIN1,
  NEAR_BYTES_MAX,
  UTF16,
} from './format.ts'
import { copyInto } from './bytes.ts'
import { TextBytes } from './text.ts'

const WORDS_FIRST = 4096
/** A scratch buffer larger than this is released after use. */
const WORDS_KEPT = 1 << 18

interface Far {
  /** The index in the structure where the position of the bytes is written. */
  readonly patch: number
  readonly bytes: Uint8Array
  readonly length: number
}

const doubles = new Float64Array(1)
const halves = new Int32Array(doubles.buffer)

/**
 * The structure of one payload while it is written: words in this thread's own memory. Large buffers are only
 * recorded here. They are copied once, directly into the block in the arena.
 */
export class PayloadWriter {
  at = 0
  words: Int32Array
  private text: TextBytes
  private far: Far[] = []

  constructor() {
    this.words = new Int32Array(WORDS_FIRST)
    this.text = new TextBytes(this.words.buffer)
  }

  start(at: number): void {
    this.at = at
    if (this.far.length !== 0) this.far = []
    if (this.words.length > WORDS_KEPT) this.resize(WORDS_FIRST)
  }

  /** Makes room for `count` more words. */
  reserve(count: number): void {
    if (this.at + count > this.words.length) this.resize(Math.max(this.words.length * 2, this.at + count))
  }

  private resize(length: number): void {
    const words = new Int32Array(length)
    if (this.at > 0) words.set(this.words.subarray(0, this.at))
    this.words = words
    this.text = new TextBytes(words.buffer)
  }

  word(value: number): void {
    if (this.at === this.words.length) this.reserve(1)
    this.words[this.at++] = value
  }

  tag(tag: number, argument: number): void {
    if (this.at + 2 > this.words.length) this.reserve(2)
    if (argument < ARGUMENT_LARGE) {
      this.words[this.at++] = (argument << ARGUMENT_SHIFT) | (tag << 1)
    } else {
      this.words[this.at++] = (ARGUMENT_LARGE << ARGUMENT_SHIFT) | (tag << 1)
      this.words[this.at++] = argument
    }
  }

  double(value: number): void {
    if (this.at + 2 > this.words.length) this.reserve(2)
    doubles[0] = value
    this.words[this.at] = halves[0]
    this.words[this.at + 1] = halves[1]
    this.at += 2
  }

  /** Writes one word for each value. */
  integers(values: readonly number[]): void {
    const { length } = values
    this.reserve(length)
    const { words, at } = this
    for (let index = 0; index < length; index++) {
      const value = values[index]
      if ((value | 0) !== value) throw changedWhileRead()
      words[at + index] = value
    }
    this.at += length
  }

  /** Writes one float64 for each value, from an even word. */
  doubles(values: readonly number[]): void {
    const length = values.length
    this.reserve(length * 2 + 1)
    if ((this.at & 1) !== 0) this.words[this.at++] = 0
    const target = new Float64Array(this.words.buffer, this.at * 4, length)
    for (let index = 0; index < length; index++) {
      const value = values[index]
      if (typeof value !== 'number') throw changedWhileRead()
      target[index] = value
    }
    this.at += length * 2
  }

  string(value: string): void {
    const length = value.length
    this.reserve((length >>> 1) + 4)
    const tagAt = this.at
    this.tag(LATIN1, length)
    if (this.text.writeLatin1(value, this.at * 4)) {
      this.at += (length + 3) >>> 2
      return
    }
    this.at = tagAt
    this.tag(UTF16, length)
    this.text.writeUtf16(value, this.at * 4)
    this.at += (length + 1) >>> 1
  }

  buffer(bytes: Uint8Array): void {
    const length = bytes.byteLength
    if (length <= NEAR_BYTES_MAX) {
      this.tag(BUFFER, length)
      const words = (length + 3) >>> 2
      this.reserve(words)
      new Uint8Array(this.words.buffer, this.at * 4, length).set(bytes)
      this.at += words
      return
    }
    this.tag(BUFFER_FAR, length)
    this.far.push({ patch: this.at, bytes, length })
    this.word(0)
  }

  /** Places the large buffers behind the structure. Returns the size of the block in words. */
  layOut(): number {
    let end = this.at
    for (const { patch, bytes, length } of this.far) {
      if (bytes.byteLength !== length)
        throw new TypeError(
          'a getter of the value detached or resized a buffer of the value; do not change buffers in getters',
        )
      end += end & 1
      this.words[patch] = end
      end += (length + 3) >>> 2
    }
    return end
  }

  /** Copies the payload to `pointer`: the structure, then each large buffer. */
  copyTo(i32: Int32Array, u8: Uint8Array, pointer: number): void {
    const { words, at } = this
    if (at <= 64) for (let index = 0; index < at; index++) i32[pointer + index] = words[index]
    else i32.set(words.subarray(0, at), pointer)
    for (const { patch, bytes } of this.far) {
      copyInto(u8, (pointer + words[patch]) * 4, bytes)
    }
  }

  /** Drops everything after a mark: a part that could not travel and may be left out. */
  rollback(mark: number, farMark: number): void {
    this.at = mark
    this.far.length = farMark
  }

  get farCount(): number {
    return this.far.length
  }
}

function changedWhileRead(): TypeError {
  return new TypeError(
    'a getter of a list of numbers returned another value when it was read again; send a list without getters',
  )
}
