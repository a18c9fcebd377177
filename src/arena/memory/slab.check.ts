import { check, markAllocated, markFreed } from '../../checker/check.ts'
import { Arena, ArenaPlan } from './arena.ts'
import { assert } from '../assert.ts'
import { Slab } from './slab.ts'
import { KernelThread } from '../sync/thread.ts'

const WORDS = 1

/** Each thread has its own Slab object over the same memory, as on real CPUs. */
function slabs(capacity: number, threads: number) {
  const plan = new ArenaPlan()
  const options = { name: 'records', capacity, words: WORDS, option: 'records' }
  const first = new Slab(plan, options)
  const arena = Arena.create(plan)
  first.initialize(arena.i32)
  const kernel = Array.from({ length: threads }, (_, id) => new KernelThread(arena, id))
  const own = kernel.map((_, id) => (id === 0 ? first : new Slab(new ArenaPlan(), options)))
  return { i32: arena.i32, kernel, own }
}

check('a slab of 1 slot is never handed out twice, and is not forgotten', {}, () => {
  const { i32, kernel, own } = slabs(1, 2)
  const use = (id: number): boolean => {
    const pointer = own[id].tryAllocate(kernel[id])
    if (pointer === 0) return false
    markAllocated(i32, pointer, WORDS)
    i32[pointer] = id + 1
    assert(i32[pointer] === id + 1, 'the record is this thread’s alone')
    markFreed(i32, pointer, WORDS)
    own[id].free(i32, pointer)
    return true
  }
  return {
    threads: [() => use(0), () => use(1)],
    final: ({ results }) => {
      assert(results.includes(true), 'someone got the slot')
      assert(own[0].count(i32) === 0, 'the slot is free')
      assert(own[0].tryAllocate(kernel[0]) !== 0, 'and can be had again')
    },
  }
})

check('two threads with 2 slots both get one, in any interleaving', {}, () => {
  const { i32, kernel, own } = slabs(2, 2)
  return {
    threads: [() => own[0].tryAllocate(kernel[0]), () => own[1].tryAllocate(kernel[1])],
    final({ results }) {
      assert(results[0] !== 0 && results[1] !== 0, 'the slab is not full for any thread')
      assert(results[0] !== results[1], 'the slots are different')
      assert(own[0].count(i32) === 2, 'both are taken')
    },
  }
})

check('a handle is stale once its slot was freed, also when it lives again', {}, () => {
  const { i32, kernel, own } = slabs(1, 2)
  const pointer = own[0].tryAllocate(kernel[0])
  const handle = own[0].handleOf(i32, pointer)
  return {
    threads: {
      recycler() {
        own[0].free(i32, pointer)
        return own[0].tryAllocate(kernel[0])
      },
      holder: () => own[1].resolve(i32, handle),
    },
    final({ results }) {
      assert(results[0] === pointer, 'the slot lives again')
      assert(results[1] === 0 || results[1] === pointer, 'a handle gives its own slot or nothing')
      assert(own[1].resolve(i32, handle) === 0, 'the old handle is stale for good')
    },
  }
})

check(
  'a thread that dies anywhere in allocate, publish or free leaves nothing that reclaim does not repair',
  { crashes: { max: 1, threads: [0] } },
  () => {
    const { i32, kernel, own } = slabs(2, 3)
    return {
      threads: {
        mortal() {
          const pointer = own[0].tryAllocate(kernel[0])
          if (pointer === 0) return
          own[0].publish(i32, pointer)
          own[0].free(i32, pointer)
        },
        survivor() {
          const pointer = own[1].tryAllocate(kernel[1])
          assert(pointer !== 0, 'one of two slots is always left')
          own[1].free(i32, pointer)
        },
      },
      recover: (dead: number) => own[2].reclaim(i32, dead),
      final({ crashed }) {
        // A slot that the dead thread had published belongs to its new owner: it is the only slot that may
        // stay taken.
        for (let slot = own[2].after(i32, 0); slot !== 0; slot = own[2].after(i32, slot))
          assert(!own[2].isUnpublishedBy(i32, slot, 0), 'no slot is unpublished')
        const taken = own[2].count(i32)
        assert(taken <= crashed.length, 'at most the published slot of the dead thread is taken')
        for (let left = 2 - taken; left > 0; left--) {
          assert(own[2].tryAllocate(kernel[2]) !== 0, 'every other slot can be had')
        }
      },
    }
  },
)
