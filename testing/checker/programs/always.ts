import type { Always } from '../../../src/checker/spec/always.ts'
import type { Program } from '../../../src/checker/machine/program.ts'

/** Programs whose final states are all correct, but whose intermediate states may not be. */
export interface Watched extends Program {
  readonly always: Always
}

function notBoth(memory: Int32Array): Always {
  return {
    words: { left: [memory, 0], right: [memory, 1] },
    holds({ left, right }) {
      if (left + right > 1) throw new Error('both are up')
    },
  }
}

/** Each thread sets its own word and clears it again: neither touches the word of the other. */
export function raiseBoth(): Watched {
  const memory = new Int32Array(new SharedArrayBuffer(8))
  const raise = (index: number) => (): void => {
    Atomics.store(memory, index, 1)
    Atomics.store(memory, index, 0)
  }
  return {
    threads: { left: raise(0), right: raise(1) },
    always: notBoth(memory),
    final() {
      if (memory[0] + memory[1] !== 0) throw new Error('one is up at the end')
    },
  }
}

/** The same, one thread after the other. */
export function raiseInTurn(): Watched {
  const memory = new Int32Array(new SharedArrayBuffer(12))
  const raise = (index: number) => (): void => {
    while (Atomics.compareExchange(memory, 2, 0, 1) !== 0) Atomics.pause?.()
    Atomics.store(memory, index, 1)
    Atomics.store(memory, index, 0)
    Atomics.store(memory, 2, 0)
  }
  return { threads: { left: raise(0), right: raise(1) }, always: notBoth(memory) }
}

/** A thread that dies while its word is set, and a recovery that ignores the word. */
export function diesInBetween(): Watched {
  const memory = new Int32Array(new SharedArrayBuffer(8))
  return {
    threads: {
      mortal() {
        Atomics.store(memory, 0, 1)
        Atomics.store(memory, 0, 0)
      },
    },
    recover: () => Atomics.store(memory, 1, 1),
    always: notBoth(memory),
  }
}
