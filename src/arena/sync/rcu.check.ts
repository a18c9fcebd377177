import { check, markFreed } from '../../checker/check.ts'
import { Arena, ArenaPlan } from '../memory/arena.ts'
import { assert } from '../assert.ts'
import { Rcu, RcuNode } from './rcu.ts'
import { KernelThread } from './thread.ts'

const VALUE = RcuNode.words
const NODE_WORDS = RcuNode.words + 1

/**
 * A word that points at the first of some objects, with a value; every thread has its own Rcu over the same
 * memory.
 */
function published(threads: number) {
  const plan = new ArenaPlan()
  const region = Rcu.reserve(plan, threads)
  const link = plan.reserve('link', 1).start
  const node = plan.reserve('nodes', threads * NODE_WORDS).start
  const arena = Arena.create(plan)
  const { i32 } = arena
  const rcu = Array.from({ length: threads }, () => new Rcu(region, threads))
  const kernel = rcu.map((_, id) => new KernelThread(arena, id))
  rcu[0].initialize(i32)
  const callback = rcu.map(one => one.register((_, at) => markFreed(i32, at, NODE_WORDS)))[0]
  rcu.forEach((one, id) => one.online(kernel[id]))
  i32[node + VALUE] = 42
  i32[link] = node
  return { i32, link, node, rcu, kernel, callback }
}

function read(i32: Int32Array, link: number, rcu: Rcu, thread: KernelThread): void {
  const at = Atomics.load(i32, link)
  if (at !== 0) assert(i32[at + VALUE] === 42, 'an object that a reader can reach is whole')
  rcu.quiescent(thread)
}

check('an object passed to callRcu is not freed while a reader may refer to it', {}, () => {
  const { i32, link, node, rcu, kernel, callback } = published(2)
  return {
    threads: {
      writer() {
        Atomics.store(i32, link, 0)
        rcu[0].callRcu(kernel[0], node, callback)
        rcu[0].quiescent(kernel[0])
        while (rcu[0].runCallbacks(kernel[0]) === 0);
      },
      reader() {
        read(i32, link, rcu[1], kernel[1])
        read(i32, link, rcu[1], kernel[1])
        rcu[1].idleEnter(kernel[1])
      },
    },
    final: () => assert(rcu[0].queued(i32, 0) === 0, 'the callback has run'),
  }
})

check(
  'a grace period ends only when no reader can hold the object, and an idle CPU does not delay it',
  {},
  () => {
    const { i32, link, node, rcu, kernel } = published(3)
    rcu[2].idleEnter(kernel[2])
    return {
      threads: {
        writer() {
          Atomics.store(i32, link, 0)
          const period = rcu[0].requestPeriod(i32)
          rcu[0].quiescent(kernel[0])
          while (!rcu[0].hasPassed(i32, period));
          markFreed(i32, node, NODE_WORDS)
        },
        reader() {
          read(i32, link, rcu[1], kernel[1])
          rcu[1].idleEnter(kernel[1])
        },
        sleeper() {
          rcu[2].idleExit(kernel[2])
          read(i32, link, rcu[2], kernel[2])
          rcu[2].idleEnter(kernel[2])
        },
      },
    }
  },
)

check(
  'the callbacks of a CPU that dies at any step are adopted and run',
  { crashes: { max: 1, threads: [0] } },
  () => {
    const { i32, link, node, rcu, kernel, callback } = published(3)
    let unlinked = false
    return {
      threads: {
        mortal() {
          Atomics.store(i32, link, 0)
          unlinked = true
          rcu[0].callRcu(kernel[0], node, callback)
          rcu[0].idleEnter(kernel[0])
        },
        reader: () => {
          read(i32, link, rcu[1], kernel[1])
          rcu[1].idleEnter(kernel[1])
        },
      },
      recover(dead: number) {
        rcu[2].offline(i32, dead)
        const adopted = rcu[2].adopt(kernel[2], dead)
        rcu[2].quiescent(kernel[2])
        let ran = 0
        while (ran < adopted) ran += rcu[2].runCallbacks(kernel[2])
      },
      final({ crashed }) {
        assert(rcu[2].queued(i32, 2) === 0, 'what was adopted has run')
        if (crashed.length === 0) assert(unlinked && rcu[0].queued(i32, 0) === 1, 'what was not, waits')
      },
    }
  },
)

check(
  'a CPU that dies at any step of adopting leaves each callback on one list, of the thread that it names',
  { crashes: { max: 1, threads: [0] } },
  () => {
    const { i32, node, rcu, kernel, callback } = published(3)
    const [mortal, gone, recovery] = [0, 1, 2]
    rcu[gone].callRcu(kernel[gone], node, callback)
    rcu[gone].offline(i32, gone)
    return {
      threads: { mortal: () => void rcu[mortal].adopt(kernel[mortal], gone) },
      recover(dead: number) {
        rcu[recovery].endAdoption(i32, gone, dead)
        const listed = rcu[recovery].repair(i32, dead)
        assert(
          !rcu[recovery].leftBy(i32, node, dead, listed),
          'a node that is on a list is taken for one that is not',
        )
        rcu[recovery].offline(i32, dead)
      },
      final({ crashed }) {
        const queues = [mortal, gone].map(cpu => rcu[recovery].queued(i32, cpu))
        assert(queues[0] + queues[1] === 1, 'the callback waits on one list')
        // Both come back, and each queues another one behind what it has.
        for (const cpu of [mortal, gone]) {
          rcu[cpu].online(kernel[cpu])
          rcu[cpu].callRcu(kernel[cpu], node + (cpu + 1) * NODE_WORDS, callback)
        }
        for (const cpu of [mortal, gone, recovery]) rcu[cpu].quiescent(kernel[cpu])
        const ran = [mortal, gone].map(cpu => rcu[cpu].runCallbacks(kernel[cpu]))
        assert(ran[0] + ran[1] === 3, `every callback runs once, also after ${crashed.length} deaths`)
      },
    }
  },
)
