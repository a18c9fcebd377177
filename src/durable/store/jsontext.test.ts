import { expect, test } from 'vitest'
import { jsonText } from './jsontext.ts'

test('NUL and halves of surrogate pairs become U+FFFD, and nothing else changes', () => {
  const texts = [
    'a\0b',
    '\ud800',
    'x\udc00y',
    '\\u0000',
    '\\\\u0000',
    '\\\0',
    '😀',
    '"\n\u001f',
    'ud800',
    '\\ud83d',
  ]
  for (const text of texts) {
    const expected = text.replaceAll('\0', '\ufffd').toWellFormed()
    expect(JSON.parse(jsonText(text)), JSON.stringify(text)).toBe(expected)
    expect(JSON.parse(jsonText({ [text]: [text] })), JSON.stringify(text)).toEqual({ [expected]: [expected] })
  }
})
