import { describe, expect, it } from 'vitest'
import { bar, fit, formatMs, paint, table, terminalOf } from './terminal.ts'

const tty = { isTTY: true, columns: 100, rows: 30 }
const utf8 = { LANG: 'en_GB.UTF-8', TERM: 'xterm' }

describe('a terminal', () => {
  it('has colours on a TTY', () => {
    expect(terminalOf(tty, utf8)).toEqual({ colour: true, unicode: true, columns: 100, rows: 30 })
    expect(terminalOf({}, utf8)).toMatchObject({ colour: false, columns: 80, rows: 24 })
  })

  it('has no colours with NO_COLOR, on a dumb terminal, or in a pipe, unless FORCE_COLOR is set', () => {
    expect(terminalOf(tty, { ...utf8, NO_COLOR: '1' }).colour).toBe(false)
    expect(terminalOf(tty, { ...utf8, NO_COLOR: '' }).colour).toBe(true)
    expect(terminalOf(tty, { ...utf8, TERM: 'dumb' })).toMatchObject({ colour: false, unicode: false })
    expect(terminalOf({}, { ...utf8, FORCE_COLOR: '1' }).colour).toBe(true)
    expect(terminalOf({}, { ...utf8, FORCE_COLOR: '1', NO_COLOR: '1' }).colour).toBe(false)
  })

  it('has Unicode in a UTF-8 locale', () => {
    expect(terminalOf(tty, { LANG: 'C' }).unicode).toBe(false)
    expect(terminalOf(tty, { LANG: 'C', LC_ALL: 'C.utf8' }).unicode).toBe(true)
  })
})

describe('drawing', () => {
  const plain = terminalOf({}, { LANG: 'C' })
  const rich = terminalOf(tty, utf8)

  it('paints only on a terminal with colours', () => {
    expect(paint(plain, 'red', 'x')).toBe('x')
    expect(paint(rich, 'red', 'x')).toBe('\u001b[31mx\u001b[39m')
  })

  it('draws bars of one width for every share', () => {
    expect(bar(plain, 0.5, 10)).toBe('#####.....')
    for (const share of [-1, 0, 0.01, 0.33, 0.5, 0.999, 1, 7]) {
      expect(bar(plain, share, 10)).toHaveLength(10)
      expect([...bar(rich, share, 10)]).toHaveLength(10)
    }
    expect(bar(rich, 1, 4)).toBe('████')
    expect(bar(rich, 0.125, 4)).toBe('▌   ')
  })

  it('prints times in the unit that fits', () => {
    expect([0.0042, 0.25, 4.2, 250, 4200, 42_000, 125_000, Number.NaN].map(formatMs)).toEqual([
      '4.2 µs',
      '250 µs',
      '4.2 ms',
      '250 ms',
      '4.20 s',
      '42.0 s',
      '2m05s',
      '-',
    ])
  })

  it('cuts a text that does not fit', () => {
    expect(fit(plain, 'abcdef', 4)).toBe('abc~')
    expect(fit(rich, 'abcdef', 4)).toBe('abc…')
    expect(fit(rich, 'abc', 4)).toBe('abc')
  })

  it('aligns columns: text to the left, numbers to the right', () => {
    expect(
      table([
        ['name', 'n'],
        ['a', 5],
        ['bcdef', 12],
      ]),
    ).toEqual(['name    n', 'a       5', 'bcdef  12'])
  })
})
