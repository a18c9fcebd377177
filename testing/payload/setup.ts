import { Arena, ArenaPlan } from '../../src/arena/memory/arena.ts'
import { PayloadHeap } from '../../src/arena/memory/heap.ts'
import { KernelThread } from '../../src/arena/sync/thread.ts'
import { initializeLent, PayloadCodec, reserveLent } from '../../src/payload/codec.ts'

/** An arena with nothing in it but a payload heap, and a codec for each of so many threads. */
export function payloadArena(options: { bytes?: number; threads?: number } = {}): {
  arena: Arena
  heap: PayloadHeap
  threads: KernelThread[]
  codecs: PayloadCodec[]
} {
  const plan = new ArenaPlan()
  const region = PayloadHeap.reserve(plan, options.bytes ?? 16 << 20, 'heap')
  const lent = reserveLent(plan)
  const arena = Arena.create(plan, { debug: true })
  const heap = new PayloadHeap(arena, region, 'heap')
  heap.initialize()
  initializeLent(arena, lent)
  const threads = Array.from({ length: options.threads ?? 1 }, (_, id) => new KernelThread(arena, id))
  const codecs = threads.map(thread => new PayloadCodec(heap, thread, lent))
  return { arena, heap, threads, codecs }
}
