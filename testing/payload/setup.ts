import { Arena, ArenaPlan } from '../../src/arena/memory/arena.ts'
import { PayloadHeap } from '../../src/arena/memory/heap.ts'
import { KernelThread } from '../../src/arena/sync/thread.ts'
import { initializePublished, PayloadCodec, reservePublished } from '../../src/payload/codec.ts'

/** An arena with only a payload heap, and a codec for each of `threads` threads. */
export function payloadArena(options: { bytes?: number; threads?: number } = {}): {
  arena: Arena
  heap: PayloadHeap
  threads: KernelThread[]
  codecs: PayloadCodec[]
} {
  const plan = new ArenaPlan()
  const region = PayloadHeap.reserve(plan, options.bytes ?? 16 << 20, 'heap')
  const published = reservePublished(plan)
  const arena = Arena.create(plan, { debug: true })
  const heap = new PayloadHeap(arena, region, 'heap')
  heap.initialize()
  initializePublished(arena, published)
  const threads = Array.from({ length: options.threads ?? 1 }, (_, id) => new KernelThread(arena, id))
  const codecs = threads.map(thread => new PayloadCodec(heap, thread, published))
  return { arena, heap, threads, codecs }
}
