import { parentPort } from 'node:worker_threads'
import type { Call, VectorCall } from './bench.ts'
import { comeOnStage } from './stagethread.ts'

/** A plain thread that makes one futex call after the other and reports each result. */
const { fx, mapped } = comeOnStage()

parentPort?.on('message', (call: Call | VectorCall) => {
  parentPort?.postMessage(run(call))
})

function run(call: Call | VectorCall): number {
  if ('waitv' in call) {
    const entries = call.waitv.map(({ word, val, flags }) => ({
      uaddr: { view: mapped[0].i32, index: word },
      val,
      flags,
    }))
    return fx.waitvSync(entries, 0, call.timeout ?? null, 1)
  }
  const { i32 } = mapped[call.map ?? 0]
  if (call.priority !== undefined) {
    fx.waitSync(fx.word(i32, call.word), call.val, { priority: call.priority, shared: true })
    return 0
  }
  return fx.futexSync(
    { view: i32, index: call.word },
    call.op,
    call.val,
    call.timeout ?? null,
    null,
    call.val3 ?? 0,
  )
}
