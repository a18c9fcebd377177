/**
 * Claims: work that one thread of a process does once for all: the compilation of a module, or a warning. A
 * table in shared memory; each entry is a hash and a state. A thread claims a key by writing its hash.
 *
 *   thread A                              thread B
 *   --------                              --------
 *   (a) hash: 0 -> h, by compare-exchange
 *                                         (b) compare-exchange finds h: not the first
 *   compiles, writes the disk cache       (c) waits while state is 0
 *   (d) state: 0 -> 1, notify
 *                                         (e) wakes, reads the disk cache
 *
 * With a load and a store in place of (a), both threads would be the first. With the state set before the
 * cache is written, B would find nothing at (e), and compile too. A thread that dies between (a) and (d)
 * leaves its entry with state 0: B stops waiting after its timeout, and compiles.
 */
const WORDS = 2

export type Claim =
  /** This thread has the claim, and calls `done` when it has finished. */
  | { readonly first: true; done(): void }
  /** Another thread has it; `wait` returns when that one has finished, or after `timeout_ms`. */
  | { readonly first: false; wait(timeout_ms: number): void }

const alone: Claim = { first: true, done: () => undefined }

/**
 * Over memory of the caller: 8 bytes for each entry. When the table is full, each thread does the work
 * itself.
 */
export class Claims {
  readonly #words: Int32Array

  constructor(memory: SharedArrayBuffer) {
    this.#words = new Int32Array(memory)
  }

  claim(key: string): Claim {
    const words = this.#words
    const entries = words.length / WORDS
    const hash = hashOf(key)
    for (let probe = 0; probe < Math.min(entries, 64); probe++) {
      const at = (((hash >>> 0) + probe) % entries) * WORDS
      const found = Atomics.compareExchange(words, at, 0, hash) // (a) (b)
      if (found === 0) {
        return {
          first: true,
          done() {
            Atomics.store(words, at + 1, 1) // (d)
            Atomics.notify(words, at + 1)
          },
        }
      }
      if (found === hash) {
        return { first: false, wait: timeout_ms => void Atomics.wait(words, at + 1, 0, timeout_ms) } // (c)
      }
    }
    return alone
  }
}

/** FNV-1a; never 0. */
function hashOf(key: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193)
  return hash === 0 ? 1 : hash
}
