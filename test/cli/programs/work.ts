import { sleep } from '../../../src/index.ts'

export function spin(ms: number): number {
  'use task'
  const end = performance.now() + ms
  let turns = 0
  while (performance.now() < end) turns++
  return turns
}

export function* nap(ms: number): Generator<number, void, unknown> {
  yield* sleep(ms)
}
