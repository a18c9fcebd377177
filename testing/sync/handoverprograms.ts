import { assert } from '../../src/arena/assert.ts'
import type { Setup } from '../../src/checker/check.ts'
import type { FutexContext } from '../../src/futex/core/context.ts'
import { HEAP_HANDOVER } from '../../src/futex/core/records.ts'
import type { PayloadCodec } from '../../src/payload/codec.ts'
import { CheckedThreads } from './checksetup.ts'
import { VALUE_WORDS, type Words } from '../../src/sync/wait/value.ts'
import { PIPE_DONE, SharedPipe } from '../../src/sync/channel/sharedpipe.ts'

/** What may be wrong about the way of a payload. */
export type BrokenMark = 'settles first' | 'marks nothing' | 'settles afterwards'

const AT = 64
const ID = 1
const DOMAIN = 2

function valueOf(block: number): Words {
  const buffer = new ArrayBuffer(VALUE_WORDS * 4)
  const words = { i32: new Int32Array(buffer), f64: new Float64Array(buffer) }
  words.i32[0] = block === 0 ? 0 : HEAP_HANDOVER
  words.i32[1] = block
  return words
}

/**
 * As PayloadHeap, with a word for each of a few blocks: whose it is, or FREE. How a real one is repaired is
 * explored in arena/memory/slab.check.ts and payload/exchange.check.ts.
 */
const FREE = -1_000_000
const BLOCKS = 3

class FewBlocks {
  private readonly owners = new Int32Array(new SharedArrayBuffer(4 * (BLOCKS + 1))).fill(FREE)

  allocate(thread: number): number {
    for (let block = 1; block <= BLOCKS; block++)
      if (Atomics.compareExchange(this.owners, block, FREE, thread + 1) === FREE) return block
    throw new Error('there are too few blocks')
  }

  free(block: number): void {
    assert(Atomics.exchange(this.owners, block, FREE) !== FREE, 'a block is freed once')
  }

  claim(thread: number, block: number): void {
    this.mustBe(block)
    Atomics.store(this.owners, block, thread + 1)
  }

  settle(block: number): void {
    this.mustBe(block)
    Atomics.store(this.owners, block, 0)
  }

  mark(block: number, mark: number): void {
    this.mustBe(block)
    Atomics.store(this.owners, block, mark)
  }

  private mustBe(block: number): void {
    assert(Atomics.load(this.owners, block) !== FREE, 'the header of a block is touched while it is one')
  }

  resolveMarked(block: number, mark: number, isNamed: boolean): void {
    Atomics.compareExchange(this.owners, block, mark, isNamed ? 0 : FREE)
  }

  repair(dead: number): void {
    for (let block = 1; block <= BLOCKS; block++) Atomics.compareExchange(this.owners, block, dead + 1, FREE)
  }

  get used(): number {
    return this.owners.subarray(1).filter(owner => owner !== FREE).length
  }
}

/** A channel whose values are blocks of a heap: what is in use is what the ring names. */
class Payloads {
  readonly threads: CheckedThreads
  private readonly heap = new FewBlocks()
  private readonly pipes: readonly SharedPipe[]

  constructor(count: number, latest: boolean, broken: BrokenMark | undefined) {
    this.threads = new CheckedThreads(count, true)
    const { view } = this.threads
    view[AT + ID] = AT
    view[AT + DOMAIN] = 77
    SharedPipe.initialize({ i32: view, at: AT }, 1, latest)
    this.pipes = this.threads.contexts.map((context, id) => {
      const pipe = new SharedPipe({ i32: view, at: AT }, null)
      const codec = this.codec(id, broken)
      Object.assign(pipe, { codec: () => codec })
      if (broken === 'settles afterwards')
        Object.assign(pipe, { given: (block: number) => block !== 0 && this.heap.settle(block) })
      pipe.lock(context)
      pipe.unlock(context)
      return pipe
    })
  }

  private codec(id: number, broken: BrokenMark | undefined): PayloadCodec {
    const { heap } = this
    const marks = {
      undefined: (block: number, mark: number) => heap.mark(block, mark),
      'settles first': (block: number) => heap.settle(block),
      'marks nothing': () => undefined,
      'settles afterwards': (block: number, mark: number) => heap.mark(block, mark),
    }
    return {
      heap: {
        mark: marks[`${broken}`],
        claim: (_: unknown, block: number) => heap.claim(id, block),
      },
      free: (block: number) => heap.free(block),
      resolveMarked: (block: number, mark: number, named: boolean) => heap.resolveMarked(block, mark, named),
    } as unknown as PayloadCodec
  }

  send(id: number): void {
    const block = this.heap.allocate(id)
    if (this.pipes[id].send(this.context(id), valueOf(block), 0) !== PIPE_DONE) this.heap.free(block)
  }

  /** Receives a value and frees it, as a decoder does. */
  receive(id: number): boolean {
    const words = valueOf(0)
    if (this.pipes[id].receive(this.context(id), words.i32, 0) !== PIPE_DONE) return false
    this.heap.free(words.i32[1])
    return true
  }

  context(id: number): FutexContext {
    return this.threads.contexts[id]
  }

  /** Frees what the dead thread had. The next user of the channel resolves its note. */
  recover(dead: number): void {
    this.heap.repair(dead)
  }

  verify(): void {
    const last = this.pipes.length - 1
    // As the next sender, and a receiver that waits, do.
    this.pipes[last].lock(this.context(last))
    this.pipes[last].unlock(this.context(last))
    while (this.receive(last));
    assert(this.heap.used === 0, 'no block is left without an owner')
  }
}

/** A thread that sends, or receives, dies at any step; another goes on at the other end. */
export function dyingWithPayload(does: 'sends' | 'receives' | 'replaces', broken?: BrokenMark): Setup {
  return () => {
    const payloads = new Payloads(2, does === 'replaces', broken)
    if (does !== 'sends') payloads.send(2)
    return {
      threads: {
        mortal: () => (does === 'receives' ? void payloads.receive(0) : payloads.send(0)),
        other: () => void payloads.receive(1),
      },
      recover: (dead: number) => payloads.threads.recover(dead, () => payloads.recover(dead)),
      final: () => payloads.verify(),
    }
  }
}
