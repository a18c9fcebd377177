import { readFileSync } from 'node:fs'
import { originalPositionFor, TraceMap } from '@jridgewell/trace-mapping'
import { describe, expect, test } from 'vitest'
import { fileOf } from '../realcode/packages.ts'
import { outputOf, programFiles, readProgram } from './programs.ts'

/** Strings first, so that no word is found inside one: the compiler writes some of its own. */
const word = /"(?:[^"\\]|\\.)*"|[A-Za-z_$][\w$]*/g
/** The words that the compiler adds. */
const own =
  /^(?:if|yield|void|function|const|let|for|of|break|continue|typeof|call|length|return|new|static|this|else|key|super|async|globalThis|number|arguments|target|e|import|from|as|require|heddle|runtime|plain|generator|true|false|try|catch|finally|throw|closes|close|closed|open|threw|done|next|take)$/

/** Every word of the output that is from the source, with its position by the map. */
function* words(
  code: string,
  map: object,
): Generator<{ word: string; line: number; column: number; at: string }> {
  const trace = new TraceMap(map as never)
  for (const [index, text] of code.split('\n').entries()) {
    for (const match of text.matchAll(word)) {
      if (match[0].startsWith('"') || match[0].includes('$h_')) continue
      const { line, column } = originalPositionFor(trace, { line: index + 1, column: match.index })
      if (line !== null) yield { word: match[0], line, column, at: `${index + 1}:${match.index}` }
    }
  }
}

function expectTrueMap(source: string, file: string, lowering: 'frames' | 'generator'): void {
  const { code, map } = outputOf(source, file, { lowering })
  expect(map).not.toBeNull()
  const lines = source.split('\n')
  const strange: string[] = []
  let same = 0
  for (const { word, line, column } of words(code, map!)) {
    if (lines[line - 1]!.startsWith(word, column)) same++
    else if (!own.test(word)) strange.push(`${word} ${line}:${column}`)
  }
  // Names that the compiler repeats (a loop's counter, a callee) map to their statement. A function that
  // unwinds names its variables at each resume point: their number is not limited.
  if (lowering === 'generator') expect(strange.length, strange.slice(0, 20).join(', ')).toBeLessThan(same / 8)
  expect(same).toBeGreaterThan(source.length / 20)

  // Each source position of a call or a throw is in the map: stack traces show these.
  const found = new Set([...words(code, map!)].map(({ word, line, column }) => `${word} ${line}:${column}`))
  for (const [index, text] of lines.entries()) {
    // A `return` inside a `try` with a `finally` that can suspend is a jump, in a function that unwinds.
    const places = lowering === 'frames' ? /\b(?:throw|log)\b(?! *=>)/g : /\b(?:throw|return|log)\b(?! *=>)/g
    for (const match of text.matchAll(places)) {
      if (/\/\/|\*/.test(text.slice(0, match.index))) continue
      expect(found, `${file}:${index + 1}:${match.index}`).toContain(
        `${match[0]} ${index + 1}:${match.index}`,
      )
    }
  }
}

describe.each(['frames', 'generator'] as const)('made resumable by %s,', lowering => {
  test.each(programFiles())('the map of %s leads each word back to its source position', file => {
    expectTrueMap(readProgram(file), file, lowering)
  })

  test('the map of a large file leads each word back to its source position', () => {
    const file = fileOf('js-yaml', 'dist/js-yaml.mjs')
    expectTrueMap(`'use task';${readFileSync(file, 'utf8')}`, file, lowering)
  })
})
