import { expect, test } from 'vitest'
import { check, found } from '../../checker/check.ts'
import { compilers } from './claims.check.ts'
import { type Claim, Claims } from './claims.ts'

test('threads that load one module compile it once', () => {
  expect(
    check(
      'sound',
      {},
      compilers(2, memory => new Claims(memory)),
    ).complete,
  ).toBe(true)
})

test('a claim by a load and a store lets both compile', () => {
  const broken = (memory: SharedArrayBuffer): Pick<Claims, 'claim'> => {
    const words = new Int32Array(memory)
    return {
      claim(): Claim {
        if (Atomics.load(words, 0) !== 0)
          return { first: false, wait: () => void Atomics.wait(words, 1, 0, Infinity) }
        Atomics.store(words, 0, 1)
        return {
          first: true,
          done() {
            Atomics.store(words, 1, 1)
            Atomics.notify(words, 1)
          },
        }
      },
    }
  }
  expect(found(compilers(2, broken))).toMatch(/the module is compiled once/)
})

test('a claim that is done before the output is kept lets both compile', () => {
  const broken = (memory: SharedArrayBuffer): Pick<Claims, 'claim'> => {
    const claims = new Claims(memory)
    return {
      claim(key: string): Claim {
        const claim = claims.claim(key)
        if (!claim.first) return claim
        claim.done()
        return { first: true, done: () => undefined }
      },
    }
  }
  expect(found(compilers(2, broken))).toMatch(/the module is compiled once/)
})

test('a key has one first thread, until the table is full: then each thread is on its own', () => {
  const claims = new Claims(new SharedArrayBuffer(2 * 8))
  expect(claims.claim('a').first).toBe(true)
  expect(claims.claim('a').first).toBe(false)
  expect(claims.claim('b').first).toBe(true)
  expect(claims.claim('b').first).toBe(false)
  expect(claims.claim('c').first).toBe(true)
  expect(claims.claim('c').first).toBe(true)
})
