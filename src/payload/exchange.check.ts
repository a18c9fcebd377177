import { Arena, ArenaPlan } from '../arena/memory/arena.ts'
import { assert } from '../arena/assert.ts'
import { HEAP_BYTES_MIN, PayloadHeap } from '../arena/memory/heap.ts'
import { KernelThread } from '../arena/sync/thread.ts'
import { check } from '../checker/check.ts'
import { PayloadCodec, reservePublished } from './codec.ts'

const VALUE = 1.5
const READY = 1

/**
 * A record with a payload word and a ready word, and a codec for each of three threads: the sender, the
 * receiver and the recovering thread.
 */
function exchange() {
  const plan = new ArenaPlan()
  const record = plan.reserve('record', 2).start
  const region = PayloadHeap.reserve(plan, HEAP_BYTES_MIN, 'heap')
  const published = reservePublished(plan)
  const arena = Arena.create(plan)
  const threads = [0, 1, 2].map(id => new KernelThread(arena, id, true, 1))
  const heaps = threads.map(() => new PayloadHeap(arena, region, 'heap'))
  heaps[0].initialize()
  const codecs = threads.map((thread, id) => new PayloadCodec(heaps[id], thread, published))
  const [sender, receiver, rescuer] = codecs
  return {
    i32: arena.i32,
    record,
    sender,
    receiver,
    recover(dead: number) {
      rescuer.recover(dead, visit => visit(record))
    },
    /** Every used block is in the record: none is lost, and the record refers to no free block. */
    verify() {
      const word = arena.i32[record]
      assert(heaps[2].usedBlocks() === (word > 0 ? 1 : 0), 'the record holds the only block that is used')
      if (word > 0) {
        assert((rescuer.decode(word) as number[])[0] === VALUE, 'what the record holds can be read')
        rescuer.drop(record)
      }
      assert(heaps[2].usedBlocks() === 0, 'no block is used after it is freed')
      heaps[2].verify(threads[2])
    },
  }
}

check(
  'a payload is read whole or not at all, and is never lost, when sender or receiver dies at any step',
  { crashes: 1, shrink: 50 },
  () => {
    const { record, sender, receiver, recover, verify, i32 } = exchange()
    return {
      threads: {
        sender() {
          sender.put(record, sender.encodeList([VALUE], 'args'))
          Atomics.store(i32, record + READY, 1)
        },
        receiver() {
          if (Atomics.load(i32, record + READY) === 0) return undefined
          const word = receiver.take(record)
          const value = (receiver.decode(word) as number[])[0]
          receiver.free(word)
          return value
        },
      },
      recover,
      final({ results }) {
        assert(results[1] === undefined || results[1] === VALUE, 'what was read is what was sent')
        verify()
      },
    }
  },
)

check(
  'a receiver that dies at any step of taking leaves the payload in the record, or frees it',
  { crashes: 1, shrink: 50 },
  () => {
    const { record, sender, receiver, recover, verify } = exchange()
    sender.put(record, sender.encodeList([VALUE], 'args'))
    return {
      threads: {
        receiver() {
          const word = receiver.take(record)
          assert((receiver.decode(word) as number[])[0] === VALUE, 'what was taken can be read')
          receiver.free(word)
        },
      },
      recover: () => recover(1),
      final: verify,
    }
  },
)
