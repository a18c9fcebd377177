/**
 * Images whose bytes were changed, with right checksums: each is refused, or read as the state of a task that
 * ends. None hangs, and none changes an object that is not its own.
 */
import { expect, test } from 'vitest'
import { coroutineOf, setSafepointFlag } from '../../../src/coroutine/core/coroutine.ts'
import { registerMovable } from '../../../src/coroutine/core/movable.ts'
import { obstacleOf, packFrames, unpackFrames } from '../../../src/coroutine/core/packedframes.ts'
import { SeededRandom } from '../../../src/machine/simulated/random.ts'
import * as format from '../../../src/payload/format.ts'
import { imageFromBytes, imageToBytes } from '../../../src/payload/imagebytes.ts'
import { ImageEncoder } from '../../../src/payload/imageencode.ts'
import { sealed } from '../../../testing/payload/images.ts'
import { movable } from './move.ts'

const source = `'use task movable'
const notes = new WeakMap(); const kinds = { a: { x: 1 } }
class P { #x = 1; y = 2; constructor() { notes.set(this, { m: 1 }) } bump() { this.#x++; return this.#x } }
export function run(log) {
  const p = new P(), m = new Map([[p, [1, , 3]], ['k', new Set([1n])]]), re = /a/g, d = new Date(5)
  const e = new Error('x', { cause: p }), b = new Float64Array([1, 2]), f = Object.freeze({ z: [p] })
  const named = Object.assign([1], { extra: 1 }), it = m.entries(), inSet = new Set([1, 2]).values()
  const o = Object.defineProperty({ get: Math.max }, 'h', { value: kinds.a })
  let n = 0; const g = () => n++
  re.lastIndex = 3; inSet.next()
  for (const [k] of m) for (let i = 0; i < 3; i++) { log(i); g(); p.bump() }
  return [n, m.size, re.lastIndex, d, e.message, b, f, named.extra, o.h === kinds.a, it.next().done,
    notes.get(p), inSet.next().value]
}`

const raised = Int32Array.of(1)
const lowered = Int32Array.of(0)
const log = (value: unknown): unknown => value
registerMovable('test', '', [{ key: 'damaged log', hash: '', value: () => log }])

function imageAfter(turns: number): Uint8Array {
  const coroutine = coroutineOf(movable(source, 'damaged.js', { strip: 1 }).run!, [log])
  setSafepointFlag(raised, 0)
  coroutine.start()
  for (let turn = 0; turn < turns; turn++) coroutine.resume()
  setSafepointFlag(lowered, 0)
  expect(obstacleOf(coroutine)).toBe(null)
  return imageToBytes({ frames: packFrames(coroutine) }, '')
}

/** The properties of the platform's objects, as text. */
function platform(): string {
  const objects = [
    Object,
    Array,
    Function,
    Map,
    Set,
    WeakMap,
    Error,
    RegExp,
    Date,
    String,
    Symbol,
    Math,
  ].flatMap(one => ('prototype' in one ? [one, one.prototype] : [one]))
  return objects
    .map(one => {
      const keys = Reflect.ownKeys(one).map(key => {
        const { writable, enumerable, configurable } = Object.getOwnPropertyDescriptor(one, key)!
        return `${String(key)} ${writable} ${enumerable} ${configurable}`
      })
      const above = objects.indexOf(Object.getPrototypeOf(one) as never)
      return `${keys.join()} ${Object.isExtensible(one)} ${above}`
    })
    .join('\n')
}

function changed(image: Uint8Array, random: SeededRandom): Uint8Array {
  const bytes = image.slice()
  const words = new Int32Array(bytes.buffer)
  const word = (): number => 4 + random.below(words.length - 4)
  switch (random.below(4)) {
    case 0:
      for (let left = 1 + random.below(3); left > 0; left--)
        bytes[16 + random.below(bytes.length - 16)]! ^= 1 << random.below(8)
      return sealed(bytes)
    case 1:
      words[word()] = words[word()]!
      return sealed(bytes)
    case 2: {
      const cut = bytes.slice(0, word() * 4 + 4)
      new Int32Array(cut.buffer)[1] = cut.length
      return sealed(cut)
    }
    default:
      words[word()] = [0, -1, 0x7fffffff, 1 << 20, random.below(200), random.below(60) << 1][random.below(6)]!
      return sealed(bytes)
  }
}

const seed = Number(process.env['HEDDLE_SEED'] ?? 1)

test(`thousands of changed images are refused or go on, seed ${seed}`, { timeout: 600_000 }, () => {
  const random = new SeededRandom(seed)
  const images = [0, 2, 4].map(imageAfter)
  const outcomes = new Map<string, number>()
  const before = platform()
  for (let run = 0; run < 3000; run++) {
    const bytes = changed(images[random.below(images.length)]!, random)
    let outcome: string
    try {
      const coroutine = unpackFrames((imageFromBytes(bytes) as { frames: unknown }).frames)
      for (let turns = 0; turns < 100 && !coroutine.resume(); turns++);
      outcome = coroutine.state
    } catch (error) {
      outcome = String((error as { code?: unknown }).code ?? error)
    }
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
    if (run % 100 === 0 || run === 2999) expect(platform(), `HEDDLE_SEED=${seed}, run ${run}`).toBe(before)
  }
  expect(outcomes.get('ERR_HEDDLE_IMAGE')).toBeGreaterThan(1000)
  expect(outcomes.get('returned')).toBeGreaterThan(300)
  const known = [
    'ERR_HEDDLE_IMAGE',
    'ERR_HEDDLE_CODE_CHANGED',
    'ERR_HEDDLE_MODULE_MISSING',
    'returned',
    'threw',
    'preempted',
  ]
  expect([...outcomes.keys()].filter(outcome => !known.includes(outcome))).toEqual([])
})

/** Writes an image that changes Object.prototype, if its reader lets it. */
class Forger extends ImageEncoder {
  readonly #write: (encoder: Forger) => void

  constructor(write: (encoder: Forger) => void) {
    super({ carries: () => true, idOf: () => 0 }, true)
    this.#write = write
  }

  override value(value: unknown): void {
    if (value === forged) this.#write(this)
    else super.value(value)
  }
}

const forged = {}

test.each<[what: string, write: (encoder: Forger) => void]>([
  [
    'properties',
    encoder => {
      encoder.writer.tag(format.EXTRA, format.EXTRA_PROPERTIES)
      encoder.value(Object.prototype)
      encoder.value({ polluted: 1 })
    },
  ],
  [
    'a frozen state',
    encoder => {
      encoder.writer.tag(format.EXTRA, 3 << format.EXTRA_INTEGRITY_SHIFT)
      encoder.value(Array.prototype)
    },
  ],
  [
    'named elements',
    encoder => {
      encoder.writer.tag(format.ARRAY_NAMED, 1)
      encoder.value(Object.prototype)
      encoder.value('polluted')
      encoder.value(1)
    },
  ],
])('an image cannot give %s to an object that it names', (_what, write) => {
  const before = platform()
  const encoder = new Forger(write)
  encoder.start('')
  encoder.image([forged])
  const words = new Int32Array(4 + encoder.finish())
  const bytes = new Uint8Array(words.buffer)
  encoder.writer.copyTo(words, bytes, 4)
  words[0] = 0x316c6468
  words[1] = bytes.length
  expect(() => imageFromBytes(sealed(bytes))).toThrow(
    /the image is damaged: it changes an object that is not its own/,
  )
  expect(platform()).toBe(before)
  expect('polluted' in {}).toBe(false)
})
