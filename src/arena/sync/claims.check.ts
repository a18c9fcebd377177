import { check, type Setup } from '../../checker/check.ts'
import { assert } from '../assert.ts'
import { Claims } from './claims.ts'

type Claiming = Pick<Claims, 'claim'>

/** A thread that needs one module: `kept` says that the disk cache holds the output. */
function compileOnce(claims: Claiming, kept: Int32Array): number {
  const claim = claims.claim('module')
  if (!claim.first) {
    claim.wait(Infinity)
    if (Atomics.load(kept, 0) === 1) return 0
  }
  Atomics.store(kept, 0, 1)
  if (claim.first) claim.done()
  return 1
}

/** So many threads load the same module. */
export function compilers(threads: number, make: (memory: SharedArrayBuffer) => Claiming): Setup {
  return () => {
    const claims = make(new SharedArrayBuffer(2 * 8))
    const kept = new Int32Array(new SharedArrayBuffer(4))
    return {
      threads: Array.from({ length: threads }, () => () => compileOnce(claims, kept)),
      final: ({ results }) => {
        const compiled = (results as number[]).reduce((sum, count) => sum + count, 0)
        assert(compiled === 1, 'the module is compiled once')
      },
    }
  }
}

for (const threads of [2, 3]) {
  check(
    `${threads} threads compile a module once, and none waits for ever`,
    {},
    compilers(threads, memory => new Claims(memory)),
  )
}
