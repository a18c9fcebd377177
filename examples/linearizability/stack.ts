/** A lock-free stack of nodes that are used again. Words: the top, and for each node the node below it. */
const TOP = 0
const NONE = 0
/** The node is in the low bits of the top; the rest counts the changes of the top. */
const NODE_BITS = 4
const NODE_MASK = (1 << NODE_BITS) - 1

export interface Stack {
  push(node: number): void
  pop(): number | undefined
}

/** Looks correct: the compare-exchange fails when another node has come to the top. */
export class HastyStack implements Stack {
  readonly words: Int32Array

  constructor(memory: SharedArrayBuffer) {
    this.words = new Int32Array(memory)
  }

  push(node: number): void {
    const { words } = this
    for (;;) {
      const top = Atomics.load(words, TOP)
      Atomics.store(words, node, top)
      if (Atomics.compareExchange(words, TOP, top, node) === top) return
    }
  }

  pop(): number | undefined {
    const { words } = this
    for (;;) {
      const top = Atomics.load(words, TOP)
      if (top === NONE) return undefined
      const below = Atomics.load(words, top)
      if (Atomics.compareExchange(words, TOP, top, below) === top) return top
    }
  }
}

/** Each change of the top has a number, so the top with a node that has come back is another top. */
export class SteadyStack implements Stack {
  readonly words: Int32Array

  constructor(memory: SharedArrayBuffer) {
    this.words = new Int32Array(memory)
  }

  push(node: number): void {
    const { words } = this
    for (;;) {
      const top = Atomics.load(words, TOP)
      Atomics.store(words, node, top & NODE_MASK)
      if (this.changeTop(top, node)) return
    }
  }

  pop(): number | undefined {
    const { words } = this
    for (;;) {
      const top = Atomics.load(words, TOP)
      const node = top & NODE_MASK
      if (node === NONE) return undefined
      if (this.changeTop(top, Atomics.load(words, node))) return node
    }
  }

  private changeTop(top: number, node: number): boolean {
    const next = (((top >>> NODE_BITS) + 1) << NODE_BITS) | node
    return Atomics.compareExchange(this.words, TOP, top, next) === top
  }
}
