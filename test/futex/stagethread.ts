import { workerData } from 'node:worker_threads'
import { Arena, ArenaPlan } from '../../src/arena/memory/arena.ts'
import { KernelThread } from '../../src/arena/sync/thread.ts'
import { Futexes } from '../../src/futex/core/futexes.ts'
import { reserveFutexes } from '../../src/futex/core/layout.ts'
import type { MappedBuffer } from '../../src/futex/core/space.ts'
import { reserveMachine } from '../../src/machine/core/cpurecord.ts'
import { planScheduler } from '../../src/sched/core/scheduler.ts'
import { sizes, type StageBoot } from './stage.ts'

/** A plain thread on the arena of its stage, with its own futexes and the mappings of the stage. */
export function comeOnStage(): { readonly fx: Futexes; readonly mapped: readonly MappedBuffer[] } {
  const boot = workerData as StageBoot
  const plan = new ArenaPlan()
  reserveMachine(plan, boot.cpus)
  const scheduler = planScheduler(plan, { cpus: boot.cpus, tasks: boot.tasks })
  const layout = reserveFutexes(plan, sizes, scheduler.rcu)
  const fx = new Futexes(new KernelThread(Arena.attach(boot.arena), boot.id), layout, {
    now: () => performance.now(),
    space: boot.space,
  })
  return { fx, mapped: boot.mappings.map(({ buffer, handles }) => fx.space.adopt(buffer, handles)) }
}
