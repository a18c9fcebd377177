/**
 * Records: a declarative layout gives each field its word offset from the record's first word.
 *
 *     const RunQueue = record('run queue', { lock: word, depth: word, ready: words(2), vruntime: float64 })
 *     i32[queue + RunQueue.depth] += 1
 *
 * A layout is a frozen object of small integers held in a module constant, so optimised code sees
 * `i32[queue + 1]`: the field costs what a literal index costs (bench row `arena/record-access`).
 */

/** A cache line, in words: two CPUs that write different fields on one line still fight over it. */
export const LINE_WORDS = 16

/** The shape of one field. `ownLine` also pushes the field after it to the next line. */
export interface Field {
  readonly words: number
  readonly align: number
  readonly ownLine: boolean
}

/** One 32-bit word. */
export const word: Field = { words: 1, align: 1, ownLine: false }

/** A 64-bit float on an even word, read as `f64[(pointer + offset) >> 1]`. Guard it with a lock. */
export const float64: Field = { words: 2, align: 2, ownLine: false }

/** `count` consecutive words: an array, or a record embedded in this one (`words(ListNode.words)`). */
export function words(count: number): Field {
  if (!Number.isInteger(count) || count < 1)
    throw new RangeError(`words(${count}): count must be a positive integer`)
  return { words: count, align: 1, ownLine: false }
}

/** Places a field alone on its cache line (or lines): for words that several CPUs hammer. */
export function ownLine(field: Field): Field {
  return { words: field.words, align: LINE_WORDS, ownLine: true }
}

/** Offsets by field name, and `words`, the size of one record. */
export type Layout<Name extends string> = { readonly [K in Name]: number } & { readonly words: number }

/**
 * Lays the fields out in order. The size is rounded up to the strictest alignment, so that an array of
 * records keeps every field aligned: a record with an `ownLine` field is a whole number of lines.
 */
export function record<const Name extends string>(
  name: string,
  fields: { readonly [K in Name]: Field },
): Layout<Name> {
  const offsets: Record<string, number> = {}
  let end = 0
  let align = 1
  for (const [key, field] of Object.entries<Field>(fields)) {
    if (key === 'words')
      throw new TypeError(`record ${name}: a field cannot be called "words", that is its size`)
    align = Math.max(align, field.align)
    const offset = roundUp(end, field.align)
    offsets[key] = offset
    end = field.ownLine ? roundUp(offset + field.words, LINE_WORDS) : offset + field.words
  }
  if (end === 0) throw new TypeError(`record ${name}: it has no fields`)
  offsets.words = roundUp(end, align)
  // The copy matters: after a dozen computed names V8 turns an object into a hash table, and a field access
  // into a lookup.
  return Object.freeze({ ...offsets }) as unknown as Layout<Name>
}

export function roundUp(value: number, to: number): number {
  return Math.ceil(value / to) * to
}
