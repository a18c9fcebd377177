import fc from 'fast-check'
import { afterEach, describe, expect, test, vi } from 'vitest'

afterEach(() => {
  vi.unstubAllGlobals()
  vi.resetModules()
})

describe.each(['with the routines of Node', 'without them'])('text %s', how => {
  test('is read as it was written: as bytes or as 16-bit units, lone surrogates included', async () => {
    if (how === 'without them') vi.stubGlobal('Buffer', undefined)
    vi.resetModules()
    const { TextBytes } = await import('./text.ts')
    const text = new TextBytes(new SharedArrayBuffer(64 * 1024))
    const unit = (max: number) => fc.integer({ min: 0, max }).map(code => String.fromCharCode(code))
    const strings = fc.oneof(
      fc.string({ unit: unit(0xff), maxLength: 60 }),
      fc.string({ unit: unit(0xffff), maxLength: 60 }),
      fc.string({ unit: unit(0xff), minLength: 4000, maxLength: 9000 }),
    )
    fc.assert(
      fc.property(strings, fc.integer({ min: 0, max: 50 }), (value, word) => {
        const at = word * 4
        const isLatin1 = [...Array(value.length).keys()].every(index => value.charCodeAt(index) < 256)
        expect(text.writeLatin1(value, at)).toBe(isLatin1)
        if (isLatin1) expect(text.readLatin1(at, value.length)).toBe(value)
        text.writeUtf16(value, at)
        expect(text.readUtf16(at, value.length)).toBe(value)
      }),
      { numRuns: 300 },
    )
  })
})
