import { expect, test } from 'vitest'
import { float64, LINE_WORDS, ownLine, record, word, words } from './record.ts'

test('fields follow each other in the order they are declared', () => {
  const layout = record('pair', { first: word, many: words(3), last: word })
  expect(layout).toEqual({ first: 0, many: 1, last: 4, words: 5 })
})

test('a float lies on an even word, and the record keeps it so in an array', () => {
  const layout = record('timer', { state: word, deadline: float64, flag: word })
  expect(layout.deadline % 2).toBe(0)
  expect(layout.words % 2).toBe(0)
})

test('a field on its own line shares it with no other field, nor with the next record', () => {
  const layout = record('queue', { head: word, hot: ownLine(word), tail: word })
  expect(layout.hot % LINE_WORDS).toBe(0)
  expect(Math.floor(layout.head / LINE_WORDS)).not.toBe(Math.floor(layout.hot / LINE_WORDS))
  expect(Math.floor(layout.tail / LINE_WORDS)).not.toBe(Math.floor(layout.hot / LINE_WORDS))
  expect(layout.words % LINE_WORDS).toBe(0)
})

test('a layout that cannot be is refused with its name', () => {
  expect(() => record('bad', { words: word })).toThrow(/record bad.*"words"/)
  expect(() => record('empty', {})).toThrow(/record empty/)
  expect(() => words(0)).toThrow(/words\(0\)/)
  expect(() => words(1.5)).toThrow(/1\.5/)
})

test('a layout cannot be changed', () => {
  const layout = record('fixed', { a: word }) as { a: number }
  expect(() => {
    layout.a = 3
  }).toThrow(TypeError)
})
