import { expect, test } from 'vitest'
import { refuseUnknown } from './knownoptions.ts'
import { Schedule } from '../schedule/schedule.ts'

const known = { priority: true, name: true, timeout: true } as const

test.each([
  ['prority', 'did you mean priority?'],
  ['Timeout', 'did you mean timeout?'],
  ['tiemout', 'did you mean timeout?'],
  ['colour', 'it takes priority, name, timeout'],
])('an option %s that does not exist is named, with what was meant', (key, hint) => {
  expect(() => refuseUnknown('spawn', { name: 'a', [key]: 1 }, known)).toThrow(
    new TypeError(`spawn: there is no option '${key}'; ${hint}`),
  )
})

test('options that exist pass', () => {
  refuseUnknown('spawn', { name: 'a', timeout: undefined }, known)
  refuseUnknown('spawn', {}, known)
})

test('what an object inherits is not an option: a program may have put it on Object.prototype', () => {
  const inherits = Object.assign(Object.create({ polluted: 1 }) as object, { name: 'a' })
  refuseUnknown('spawn', inherits, known)
  expect(() => refuseUnknown('spawn', { polluted: 1 }, known)).toThrow(/'polluted'/)
})

test('a schedule refuses misspelt options of its own, of go and of run, and stays as it was', async () => {
  expect(() => new Schedule({ slices: 1 } as never)).toThrow(/new Schedule.*'slices'.*slice\?/)
  const schedule = new Schedule()
  expect(() => schedule.go({ nme: 'a' } as never, () => 1)).toThrow(/'nme'.*name\?/)
  await expect(schedule.run({ timeuot: 1 } as never, () => 1)).rejects.toThrow(/'timeuot'.*timeout\?/)
  expect(schedule.coroutines.size).toBe(0)
})
