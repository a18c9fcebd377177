import { originalPositionFor, TraceMap } from '@jridgewell/trace-mapping'
import { expect, test } from 'vitest'
import { join, print, Rope, rope } from './rope.ts'

const source = 'first line\nsecond line\nthird line\n'
const range = (text: string): { start: number; end: number } => {
  const start = source.indexOf(text)
  return { start, end: start + text.length }
}

test('a rope is the text of its parts, in any order and any number of times', () => {
  const made = rope`<${range('third')}|${range('first')}|${range('third')}>`
  expect(made.text(source)).toBe('<third|first|third>')
  expect(join([range('first'), 'x', new Rope()], ',').text(source)).toBe('first,x,')
})

test('printing gives the same text with and without a map', () => {
  const made = rope`a${range('second line')}b${range('first')}c${range('line\nsecond')}${range(' line\nthird')}d`
  const { code } = print(made, source, 'a.js', true)
  expect(code).toBe(made.text(source))
  expect(print(made, source, 'a.js', false)).toEqual({ code, map: null })
})

test('every source range maps back to its position, also if repeated or out of order', () => {
  const made = rope`new text ${range('third')}\n${range('first')} new ${range('second')}\nnew\n${range('second')} ${range('first')}`
  const { code, map } = print(made, source, 'a.js', true)
  const trace = new TraceMap(map as never)
  expect(trace.sources).toEqual(['a.js'])
  const lines = code.split('\n')
  const expected = { first: 1, second: 2, third: 3 }
  for (const [row, text] of lines.entries()) {
    for (const [word, line] of Object.entries(expected)) {
      const column = text.indexOf(word)
      if (column === -1) continue
      expect(
        originalPositionFor(trace, { line: row + 1, column }),
        `${word} in line ${row + 1}`,
      ).toMatchObject({
        line,
        column: 0,
        source: 'a.js',
      })
    }
  }
})

test('a rope of only new text has an empty map', () => {
  const { code, map } = print(rope`only new`, source, 'a.js', true)
  expect(code).toBe('only new')
  expect((map as { mappings: string }).mappings.replace(/;/g, '')).toBe('')
})

test('new text maps to the source before it up to its last statement end, then to the source after it, on a new line', () => {
  const made = rope`${range('first')}; } while (more(1; 2)) { if (!(${range('second')})) break; } if (look()) stop; return; }`
  const { code, map } = print(made, source, 'a.js', true)
  expect(code).toBe('first; } \nwhile (more(1; 2)) { if (!(second)) break; } if (look()) stop; return; }')
  const trace = new TraceMap(map as never)
  const lineAt = (text: string): number | null => {
    const before = code.slice(0, code.indexOf(text)).split('\n')
    return originalPositionFor(trace, { line: before.length, column: before[before.length - 1]!.length }).line
  }
  expect(['; }', 'while', 'if (!', 'break', 'look', 'return'].map(lineAt)).toEqual([1, 2, 2, 2, 2, 2])
})

test('no line begins inside a statement, a string or a template', () => {
  const texts = ['return (', 'f("a; {", ', '`; ${', '}; `; f(', '[a, ']
  for (const text of texts) {
    const made = new Rope().add(range('first')).add(text).add(range('second'))
    expect(print(made, source, 'a.js', true).code).toBe(`first${text}second`)
  }
})
