import type { Body } from '../../../src/checker/machine/program.ts'
import type { Reach } from './reach.ts'

/** The threads of a check for one way to reach memory. */
export function way(
  reach: Reach,
  words: Int32Array<SharedArrayBuffer>,
  buffer: SharedArrayBuffer,
  data: DataView,
): Body {
  return () => {
    const { run } = reach
    return run(words, buffer, data)
  }
}

export function writer(words: Int32Array): Body {
  return () => {
    Atomics.store(words, 0, 1)
    Atomics.store(words, 1, 1)
  }
}

export function reader(words: Int32Array): Body {
  return () => `${Atomics.load(words, 0)}${Atomics.load(words, 1)}`
}
