/** heddle: a preemptive multicore runtime for TypeScript. */
import './trace/attach.ts'
export { ArenaFullError } from './arena/memory/arena.ts'
export { InvariantError } from './arena/assert.ts'
export * from './coroutine/index.ts'
export * from './sync/index.ts'
export { type ChildScope, scope, scopeAsync } from './kernel/scope/childscope.ts'
export type { Policy, PolicySource } from './sched/ext/policy.ts'
export type { PolicyContext } from './sched/ext/policycontext.ts'
export { ChildTask, join } from './kernel/join/childtask.ts'
export { traceContext, type TravellingStorage, travels, withTraceContext } from './kernel/cpu/context.ts'
export {
  current,
  type CurrentTask,
  exit,
  inTask,
  spawn,
  TaskLocal,
  type TaskLocalOptions,
} from './kernel/cpu/current.ts'
export { post, receive } from './kernel/cpu/messages.ts'
export { move } from './kernel/join/transferred.ts'
export type { KernelSummary } from './kernel/boot/summary.ts'
export { workerData } from './kernel/cpu/workerdata.ts'
export {
  CpuLostError,
  CrashLoopError,
  KernelClosedError,
  KernelFaultError,
  RecoveryError,
  SpawnQueueFullError,
  TaskEndedError,
  TaskKilledError,
  TaskSuspendedError,
  ThreadLeftError,
} from './kernel/join/errors.ts'
export { Kernel } from './kernel/boot/kernel.ts'
export type { Migration, ResumeOptions } from './kernel/boot/resume.ts'
export type { MapOptions, MapProgress, TaskMap } from './kernel/spawn/map.ts'
export type { ModuleView, ResultOf, Spawnable } from './kernel/spawn/modules.ts'
export type {
  CpuRange,
  KernelOptions,
  ResizeOptions,
  SpawnOptions,
  TaskPriority,
} from './kernel/boot/options.ts'
export { registerTravelling } from './payload/travelling.ts'
export { CodeChangedError, ModuleMissingError } from './coroutine/core/movable.ts'
export { ImageError } from './payload/imagekinds.ts'
export { UntravelableError } from './payload/untravelable.ts'
export { type SleepMutex, sleepOn, type SleepOnOptions, wakeupOn } from './kernel/cpu/sleepchannel.ts'
export { TaskScope } from './kernel/scope/scope.ts'
export { ScopeCancelled } from './kernel/scope/scopemembers.ts'
export type { Allowlist } from './kernel/boot/allowlist.ts'
export type { LoadedPolicy, PolicyOptions } from './kernel/boot/policy.ts'
export { Task } from './kernel/join/task.ts'
export type { KillOptions, TaskState, TaskStatus } from './kernel/join/taskhandle.ts'
export type { TraceContext } from './kernel/cpu/tracecontext.ts'
