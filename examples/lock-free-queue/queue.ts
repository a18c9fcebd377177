const HEAD = 0
const TAIL = 1
const SLOTS = 2
const SIZE = 2

export interface Queue {
  push(value: number): boolean
  pop(): number | undefined
}

/** Looks correct, and passes ordinary tests. */
export class HastyQueue implements Queue {
  readonly words: Int32Array

  constructor(memory: SharedArrayBuffer) {
    this.words = new Int32Array(memory)
  }

  push(value: number): boolean {
    const { words } = this
    const tail = Atomics.load(words, TAIL)
    if (tail - Atomics.load(words, HEAD) === SIZE) return false
    Atomics.store(words, TAIL, tail + 1)
    Atomics.store(words, SLOTS + (tail % SIZE), value)
    return true
  }

  pop(): number | undefined {
    const { words } = this
    const head = Atomics.load(words, HEAD)
    if (head === Atomics.load(words, TAIL)) return undefined
    const value = Atomics.load(words, SLOTS + (head % SIZE))
    Atomics.store(words, HEAD, head + 1)
    return value
  }
}

/** The slot first, then the index that publishes it to the other side. */
export class SteadyQueue extends HastyQueue {
  override push(value: number): boolean {
    const { words } = this
    const tail = Atomics.load(words, TAIL)
    if (tail - Atomics.load(words, HEAD) === SIZE) return false
    Atomics.store(words, SLOTS + (tail % SIZE), value)
    Atomics.store(words, TAIL, tail + 1)
    return true
  }
}
