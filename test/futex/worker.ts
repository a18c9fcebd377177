import { parentPort, workerData } from 'node:worker_threads'
import { Arena, ArenaPlan } from '../../src/arena/arena.ts'
import { KernelThread } from '../../src/arena/thread.ts'
import { Futexes } from '../../src/futex/futexes.ts'
import { reserveFutexes } from '../../src/futex/layout.ts'
import type { MappingHandles } from '../../src/futex/space.ts'
import { reserveMachine } from '../../src/machine/cpurecord.ts'
import { planScheduler } from '../../src/sched/scheduler.ts'
import { type Call, sizes, type VectorCall } from './bench.ts'

/** A plain thread that makes one futex call after the other and tells what each returned. */
export interface WorkerBoot {
  readonly arena: SharedArrayBuffer
  readonly id: number
  readonly cpus: number
  readonly tasks: number
  readonly space: number
  readonly mappings: readonly { buffer: SharedArrayBuffer; handles: MappingHandles }[]
}

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
