import { parentPort } from 'node:worker_threads'
import { setOwnerPriority } from '../../src/futex/pi/pichain.ts'
import type { ActorCall, Order } from './actors.ts'
import { comeOnStage } from './stagethread.ts'

/** A plain thread that owns locks: it makes the requested calls, one after the other. */
const { fx, mapped } = comeOnStage()

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
