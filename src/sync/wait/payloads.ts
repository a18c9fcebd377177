import { Arena, ArenaPlan } from '../../arena/memory/arena.ts'
import { PayloadHeap } from '../../arena/memory/heap.ts'
import { KernelThread } from '../../arena/sync/thread.ts'
import { currentFutexes } from '../../futex/core/currentfutexes.ts'
import { here } from '../../kernel/cpu/here.ts'
import { initializePublished, PayloadCodec, reservePublished } from '../../payload/codec.ts'

/**
 * The codec that turns the values of a channel into words and back. In a kernel it is the kernel's. Outside
 * of a kernel, the first thread that shares a channel makes a heap for values, and the handles of its
 * channels carry this heap.
 */
const HEAP_BYTES = 64 * 1024 * 1024

const codecs = new WeakMap<SharedArrayBuffer, PayloadCodec>()
let own: SharedArrayBuffer | null = null

function plan(): {
  plan: ArenaPlan
  heap: ReturnType<typeof PayloadHeap.reserve>
  published: ReturnType<typeof reservePublished>
} {
  const made = new ArenaPlan()
  return {
    plan: made,
    heap: PayloadHeap.reserve(made, HEAP_BYTES, 'heap'),
    published: reservePublished(made),
  }
}

/** The heap for a channel that is being shared; null in a kernel, which has its own. */
export function payloadHeap(): SharedArrayBuffer | null {
  if (here.view !== null) return null
  if (own === null) {
    const { plan: words, heap, published } = plan()
    const arena = Arena.create(words)
    new PayloadHeap(arena, heap, 'heap').initialize()
    initializePublished(arena, published)
    own = arena.buffer
  }
  return own
}

/** This thread's codec for channels with this heap. */
export function codecOf(heapBuffer: SharedArrayBuffer | null): PayloadCodec {
  if (heapBuffer === null) {
    const { view } = here
    if (view !== null) return view.codec
    throw new Error('the channel belongs to a kernel, and this thread is not one of its threads')
  }
  let codec = codecs.get(heapBuffer)
  if (codec === undefined) {
    const { heap, published } = plan()
    const { thread } = currentFutexes().context
    const arena = Arena.attach(heapBuffer)
    const own = new KernelThread(arena, thread.id, thread.mayBlock)
    codec = new PayloadCodec(new PayloadHeap(arena, heap, 'heap'), own, published)
    codecs.set(heapBuffer, codec)
  }
  return codec
}
