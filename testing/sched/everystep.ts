import { assert } from '../../src/arena/assert.ts'
import { ListNode } from '../../src/arena/trees/list.ts'
import { Lock } from '../../src/arena/sync/spinlock.ts'
import type { Always } from '../../src/checker/check.ts'
import { Entity } from '../../src/sched/core/entity.ts'
import { subqueue } from '../../src/sched/classes/fifo.ts'
import { classRq, RunQueue } from '../../src/sched/core/runqueue.ts'
import type { Scheduler } from '../../src/sched/core/scheduler.ts'
import { RUNNING, TaskRecord } from '../../src/sched/core/taskrecord.ts'

/**
 * What holds for a FIFO task at every step, in every state of the CPUs. The checker evaluates it after each
 * step that writes one of the words.
 *
 * The place of a task is what memory says, not what a flag says. It is **on a queue** when the links of that
 * list lead to it, **on a CPU** when that CPU's run queue has it as its current task.
 *
 *   [1] on at most one queue
 *   [2] never both on a queue and on a CPU, nor on two CPUs
 *   [3] runnable (RUNNING, not stopped) and on neither: only during
 *         (a) a wakeup or a continue: the pi lock is held, and onCpu is 0
 *         (b) a switch or a move: the lock of the run queue of its `cpu` is held, and onRq or onCpu is 1
 *   [4] asleep, or WAKENING: on no queue
 *   [5] stopped: on a queue only while the lock of that run queue is held, by the stop that takes it off
 *   [6] with its pi lock and the lock of its run queue free: onRq says whether it is on a queue, and onCpu is 1
 *       if it is on a CPU
 */
export function everyStep(s: Scheduler, tasks: readonly number[]): Always {
  const { i32 } = s
  const words: Record<string, readonly [Int32Array, number]> = {}
  const [{ level, minor }] = tasks.map(task => {
    const priority = i32[i32[task + TaskRecord.entity] + Entity.priority]
    return { level: priority >> 2, minor: priority & 3 }
  })
  const queues: Queue[] = []
  for (let cpu = 0; cpu < s.cpus; cpu++) {
    const queue = s.queueOf(cpu)
    const head = subqueue(classRq(queue, level), minor)
    const names = { lock: `lock ${cpu}`, current: `current ${cpu}`, first: `first ${cpu}` }
    words[names.lock] = [i32, queue + RunQueue.lock + Lock.word]
    words[names.current] = [i32, queue + RunQueue.current]
    words[names.first] = [i32, head + ListNode.next]
    queues.push(names)
  }
  const watched = tasks.map((task, index) =>
    watchTask(i32, words, task, tasks.length === 1 ? '' : ` ${index}`),
  )
  return {
    words,
    holds(now) {
      for (const task of watched) holdsFor(now, task, watched, queues)
    },
  }
}

interface Queue {
  /** The names of words. */
  readonly lock: string
  readonly current: string
  readonly first: string
}

interface WatchedTask {
  readonly se: number
  readonly node: number
  readonly state: string
  readonly stopped: string
  readonly onRq: string
  readonly onCpu: string
  readonly cpu: string
  readonly pi: string
  /** With other tasks in the check: the next task on its list. */
  readonly next: string
}

function watchTask(
  i32: Int32Array,
  words: Record<string, readonly [Int32Array, number]>,
  task: number,
  suffix: string,
): WatchedTask {
  const se = i32[task + TaskRecord.entity]
  const node = se + Entity.links
  const named = (name: string, at: number): string => {
    words[name + suffix] = [i32, at]
    return name + suffix
  }
  return {
    se,
    node,
    state: named('state', task + TaskRecord.state),
    stopped: named('stopped', task + TaskRecord.stopped),
    onRq: named('onRq', se + Entity.onRq),
    onCpu: named('onCpu', se + Entity.onCpu),
    cpu: named('cpu', se + Entity.cpu),
    pi: named('pi', se + Entity.piLock + Lock.word),
    next: suffix === '' ? '' : named('next', node + ListNode.next),
  }
}

type Now = Readonly<Record<string, number>>

function holdsFor(
  now: Now,
  task: WatchedTask,
  tasks: readonly WatchedTask[],
  queues: readonly Queue[],
): void {
  let onQueues = 0
  let onCpus = 0
  for (const queue of queues) {
    if (leadsTo(now, queue, task, tasks)) onQueues++
    if (now[queue.current] === task.se) onCpus++
  }
  const piFree = now[task.pi] === 0
  const queueFree = now[queues[now[task.cpu]].lock] === 0
  const [onRq, onCpu] = [now[task.onRq] === 1, now[task.onCpu] === 1]
  const running = now[task.state] === RUNNING
  const stopped = now[task.stopped] !== 0
  assert(onQueues <= 1, 'a task is on two queues') // [1]
  assert(onQueues + onCpus <= 1, 'a task is in two places at once') // [2]
  if (running && !stopped && onQueues + onCpus === 0) {
    const inWakersHands = !piFree && !onCpu
    const inSwitchsHands = !queueFree && (onRq || onCpu)
    assert(inWakersHands || inSwitchsHands, 'a task is runnable and nowhere') // [3]
  }
  assert(running || onQueues === 0, 'a task that is asleep is on a queue') // [4]
  assert(!stopped || onQueues === 0 || !queueFree, 'a stopped task waits on a queue') // [5]
  if (piFree && queueFree) {
    assert(onRq === (onQueues === 1), 'onRq does not say whether the task is on a queue') // [6]
    assert(onCpu || onCpus === 0, 'onCpu does not say that the task is on a CPU') // [6]
  }
}

/** Whether the links of a queue lead to a task. */
function leadsTo(now: Now, queue: Queue, task: WatchedTask, tasks: readonly WatchedTask[]): boolean {
  let at = now[queue.first]
  // A list of all the tasks, at most.
  for (let hops = 0; hops < tasks.length; hops++) {
    const here = tasks.find(({ node }) => node === at)
    if (here === undefined) return false
    if (here === task) return true
    at = now[here.next]
  }
  return false
}
