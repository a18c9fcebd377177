import { TraceMap, originalPositionFor } from '@jridgewell/trace-mapping'
import * as fc from 'fast-check'
import { MagicString } from 'magic-string'
import { describe, expect, test } from 'vitest'
import {
  composeMaps,
  decodeMappings,
  encodeMappings,
  inlineMapComment,
  originalPosition,
  type SourceMap,
  takeInlineMap,
} from './sourcemap.ts'

const segment = fc
  .tuple(fc.nat(500), fc.option(fc.tuple(fc.nat(3), fc.nat(70_000), fc.nat(2_000_000))))
  .map(([column, origin]) => (origin === null ? [column] : [column, ...origin]) as never)

describe('mappings', () => {
  test('encoded segments decode to the same segments', () => {
    fc.assert(
      fc.property(fc.array(fc.array(segment, { maxLength: 6 }), { minLength: 1, maxLength: 8 }), lines => {
        expect(decodeMappings(encodeMappings(lines))).toEqual(lines)
      }),
    )
  })

  test('a real map decodes and encodes to the same text', () => {
    const text = new MagicString('const a = 1\nconst b = 2\nconst c = a + b\n')
    text.overwrite(6, 7, 'renamed').appendLeft(12, '/* between */ ').remove(24, 30)
    const map = text.generateMap({ hires: true, source: 'x.js' })
    expect(encodeMappings(decodeMappings(map.mappings))).toBe(map.mappings)
  })

  test('text that is no map is refused', () => {
    expect(() => decodeMappings('AAAA,?')).toThrow(SyntaxError)
  })
})

describe('composed maps', () => {
  const written = 'interface A {}\nlet x: number = 1\nthrow new Error(`${x}`)\n'
  const transpiled = new MagicString(written)
  transpiled.remove(0, 15).overwrite(20, 28, '').prepend('"use strict";\n')
  const inner = transpiled.generateMap({ hires: true, source: 'a.ts', includeContent: true }) as SourceMap
  const intermediate = transpiled.toString()
  const edited = new MagicString(intermediate)
  edited.prepend('import {} from "r";\n/* more */\n').appendRight(intermediate.indexOf('throw'), 'here: ')
  const outer = edited.generateMap({ hires: true, source: 'a.js' }) as SourceMap
  const output = edited.toString()

  test('lead from the output to the original source, as trace-mapping reads them', () => {
    const composed = composeMaps(outer, inner)
    const lines = output.split('\n')
    const line = lines.findIndex(text => text.includes('throw'))
    const column = lines[line]!.indexOf('throw')
    const position = originalPositionFor(new TraceMap(composed as never), { line: line + 1, column })
    expect(position).toMatchObject({ source: 'a.ts', line: 3, column: 0 })
    expect(originalPosition(composed, line + 1, column + 1)).toEqual({ line: 3, column: 1 })
  })

  test('contain nothing about lines that neither map knows', () => {
    expect(originalPosition(composeMaps(outer, inner), 2, 1)).toBeNull()
    expect(originalPosition(composeMaps(outer, inner), 99, 1)).toBeNull()
  })
})

describe('inline maps', () => {
  const map: SourceMap = {
    version: 3,
    sources: ['ünï.ts'],
    sourcesContent: ['// ✓'],
    names: [],
    mappings: 'AAAA',
  }

  test('are removed from their text', () => {
    expect(takeInlineMap(`let a\n${inlineMapComment(map)}\n`)).toEqual({ code: 'let a\n\n', map })
  })

  test('may be percent-encoded', () => {
    const comment = `//# sourceMappingURL=data:application/json;charset=utf-8,${encodeURIComponent(JSON.stringify(map))}`
    expect(takeInlineMap(`let a\n${comment}`)).toEqual({ code: 'let a\n', map })
  })

  test('that cannot be read are left alone', () => {
    for (const data of ['data:application/json;base64,####', 'data:application/json,{}', 'a.js.map']) {
      const code = `let a\n//# sourceMappingURL=${data}\n`
      expect(takeInlineMap(code)).toEqual({ code, map: null })
    }
  })

  test('inside a string are not maps', () => {
    const code = 'const s = "//# sourceMappingURL=data:application/json;base64,e30="\n'
    expect(takeInlineMap(code)).toEqual({ code, map: null })
  })
})
