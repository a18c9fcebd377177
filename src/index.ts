/** heddle: a preemptive multicore runtime for TypeScript. */
import './trace/attach.ts'
export { ArenaFullError } from './arena/arena.ts'
export { InvariantError } from './arena/assert.ts'
export * from './coroutine/index.ts'
export * from './sync/index.ts'
export { type ChildScope, scope, scopeAsync } from './task/childscope.ts'
export type { Policy, PolicySource } from './sched/policy.ts'
export type { PolicyContext } from './sched/policycontext.ts'
export { ChildTask, join } from './task/childtask.ts'
export { traceContext, type TravellingStorage, travels, withTraceContext } from './task/context.ts'
export { current, type CurrentTask, exit, inTask, spawn, TaskLocal } from './task/current.ts'
export { post, receive } from './task/messages.ts'
export { move } from './task/moved.ts'
export type { KernelSummary } from './task/summary.ts'
export { workerData } from './task/workerdata.ts'
export {
  CpuLostError,
  CrashLoopError,
  KernelClosedError,
  KernelFaultError,
  RecoveryError,
  SpawnQueueFullError,
  TaskKilledError,
  ThreadLeftError,
} from './task/errors.ts'
export { Kernel } from './task/kernel.ts'
export type { MapOptions, MapProgress, TaskMap } from './task/map.ts'
export type { ModuleView, ResultOf, Spawnable } from './task/modules.ts'
export type { CpuRange, KernelOptions, SpawnOptions, TaskPriority } from './task/options.ts'
export { registerTravelling } from './task/payload/travelling.ts'
export { UntravelableError } from './task/payload/untravelable.ts'
export { type SleepMutex, sleepOn, type SleepOnOptions, wakeupOn } from './task/sleepchannel.ts'
export { TaskScope } from './task/scope.ts'
export { ScopeCancelled } from './task/scopemembers.ts'
export type { Allowlist } from './task/allowlist.ts'
export type { LoadedPolicy, PolicyOptions } from './task/policy.ts'
export { Task } from './task/task.ts'
export type { KillOptions, TaskState, TaskStatus } from './task/taskhandle.ts'
export type { TraceContext } from './task/tracecontext.ts'
