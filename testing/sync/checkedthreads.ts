import type { Futexes } from '../../src/futex/core/futexes.ts'
import { here } from '../../src/kernel/cpu/here.ts'

/**
 * In a check, several threads run in one JavaScript thread: its context answers for the thread that the
 * checker runs at the moment, which `futexesOf` says. So a TID is never remembered: the next caller may be
 * another thread.
 */
export function enterAsChecked(futexesOf: () => Futexes): void {
  Object.defineProperty(here, 'futexes', { configurable: true, get: futexesOf })
  Object.defineProperty(here, 'tid', { configurable: true, get: () => 0, set: ignore })
  Object.defineProperty(here, 'uncounted', { configurable: true, get: () => 0, set: ignore })
}

function ignore(): void {}
