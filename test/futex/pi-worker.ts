import { parentPort, workerData } from 'node:worker_threads'
import { Arena, ArenaPlan } from '../../src/arena/arena.ts'
import { KernelThread } from '../../src/arena/thread.ts'
import { Futexes } from '../../src/futex/futexes.ts'
import { reserveFutexes } from '../../src/futex/layout.ts'
import { setOwnerPriority } from '../../src/futex/pichain.ts'
import { reserveMachine } from '../../src/machine/cpurecord.ts'
import { planScheduler } from '../../src/sched/scheduler.ts'
import { type ActorCall, type Order, sizes } from './actors.ts'
import type { WorkerBoot } from './worker.ts'

/** A plain thread that owns locks: it makes the calls that it is told to, one after the other. */
const boot = workerData as WorkerBoot
const arena = Arena.attach(boot.arena)
const plan = new ArenaPlan()
reserveMachine(plan, boot.cpus)
const scheduler = planScheduler(plan, { cpus: boot.cpus, tasks: boot.tasks })
const layout = reserveFutexes(plan, sizes, scheduler.rcu)
const fx = new Futexes(new KernelThread(arena, boot.id), layout, {
  now: () => performance.now(),
  space: boot.space,
})
const mapped = boot.mappings.map(({ buffer, handles }) => fx.space.adopt(buffer, handles))

parentPort?.on('message', (order: Order) => {
  parentPort?.postMessage(obey(order))
})

function obey(order: Order): unknown {
  switch (order.do) {
    case 'call':
      return call(order.call)
    case 'robust':
      return fx.setRobustList(
        order.index === null ? null : { view: mapped[0].i32, index: order.index },
        order.bytes,
      )
    case 'get':
      return fx.getRobustList(order.tid)
    case 'priority':
      return setOwnerPriority(fx.context, fx.self.record, order.priority)
    case 'tid':
      return fx.self.tid
    default:
      return fx.closeOwner(fx.self)
  }
}

function call({ op, word, val = 0, timeout, val2, word2, val3, map = 0, map2 = 0 }: ActorCall): number {
  return fx.futexSync(
    { view: mapped[map].i32, index: word },
    op,
    val,
    timeout ?? val2 ?? null,
    word2 === undefined ? null : { view: mapped[map2].i32, index: word2 },
    val3 ?? 0,
  )
}
