/**
 * The actions of a thread depend only on the values that its reads find. So each thread is a tree: at each
 * node its next action is one access, or it has ended, and the bytes that the access finds lead to a child.
 * The search extends a tree on demand. It runs the thread alone, from a separate set-up, and answers the
 * reads as on the path to the node.
 */
import type { Twin } from '../../coroutine/core/coroutine.ts'
import { asCheckError, CheckError } from '../errors.ts'
import { Machine } from '../machine/machine.ts'
import type { Memory } from '../machine/memory.ts'
import { pending } from '../machine/pending.ts'
import {
  bodiesOf,
  FINAL,
  namesOf,
  type Program,
  requireEnded,
  resumable,
  type Setup,
} from '../machine/program.ts'
import { nextOf } from './access.ts'
import type { Access } from './event.ts'

/**
 *   step    its next action is an access
 *   ended   it returned or threw
 *   spins   its last turn of a loop changed nothing: the turns before can be left out
 *   rests   it took more turns in a row than the check allows, in a loop that only reads shared memory and
 *           changes private state
 */
export type State = 'step' | 'ended' | 'spins' | 'rests'

/** A thread after some of its accesses. */
export interface ThreadNode {
  readonly thread: number
  /** The number of accesses that it has made. */
  readonly depth: number
  readonly parent: ThreadNode | undefined
  /** The bytes that its last access found. */
  readonly found: Uint8Array | undefined
  readonly state: State
  readonly access: Access | undefined
  /** ended: what it returned or threw. */
  readonly end: End | undefined
  /** spins: the first access of the turn. */
  readonly turn: number
  readonly children: Map<string, ThreadNode>
}

export interface End {
  readonly value: unknown
  readonly threw: boolean
}

/** A thread that has been started. */
export interface Running {
  readonly thread: number
  readonly generator: Generator<number, unknown, unknown>
  access: Access | undefined
  state: State
  end: End | undefined
  turn: number
}

export class Threads {
  readonly setup: Setup
  readonly machine: Machine
  readonly memory: Memory
  names: string[] = []
  count = 0
  /** The number of accesses performed in all runs. */
  steps = 0
  private readonly turns: number
  private readonly roots: (ThreadNode | undefined)[] = []
  /** The last run of each thread and the node that it has reached: most searches continue from there. */
  private readonly live: ({ node: ThreadNode; running: Running } | undefined)[] = []

  constructor(memory: Memory, setup: Setup, turns: number) {
    this.memory = memory
    this.setup = setup
    this.turns = turns
    this.machine = new Machine(memory)
  }

  /** Runs the set-up of the check again. */
  begin(): Program {
    this.memory.begin()
    pending.refusal = undefined
    pending.mutexes.fill(0)
    pending.idleMax = this.turns
    const program = this.setup()
    const count = bodiesOf(program).length
    if (this.count === 0) {
      this.names = namesOf(program)
      this.count = count
    } else if (this.count !== count) {
      throw new CheckError(
        'ERR_CHECK_NONDETERMINISTIC',
        `the set-up returned ${count} thread bodies, and ${this.count} the last time; it must return the same bodies every time`,
      )
    }
    pending.names = this.names
    return program
  }

  root(thread: number): ThreadNode {
    let root = this.roots[thread]
    if (root === undefined) {
      const running = this.start(bodyOf(this.begin(), thread, this.names), thread)
      root = this.nodeOf(undefined, undefined, running)
      this.roots[thread] = root
    }
    return root
  }

  /** The node that a thread reaches when the access at this node finds these bytes. */
  child(node: ThreadNode, found: Uint8Array | undefined): ThreadNode {
    const key = found === undefined ? '' : found.join()
    let child = node.children.get(key)
    if (child === undefined) {
      const running = this.at(node)
      this.perform(running, found)
      child = this.nodeOf(node, found, running)
      node.children.set(key, child)
    }
    return child
  }

  private nodeOf(
    parent: ThreadNode | undefined,
    found: Uint8Array | undefined,
    running: Running,
  ): ThreadNode {
    const { thread, state, access, end, turn } = running
    const depth = parent === undefined ? 0 : parent.depth + 1
    const node = { thread, depth, parent, found, state, access, end, turn, children: new Map() }
    this.live[thread] = { node, running }
    return node
  }

  /** A run of the thread that has reached this node. */
  private at(node: ThreadNode): Running {
    const { thread } = node
    const last = this.live[thread]
    if (last !== undefined && last.node === node) return last.running
    const way: ThreadNode[] = []
    for (let step: ThreadNode = node; step.parent !== undefined; step = step.parent) way.push(step)
    const running = this.start(bodyOf(this.begin(), thread, this.names), thread)
    for (const step of way.toReversed()) this.perform(running, step.found)
    return running
  }

  /** Drops all runs: the caller is going to run all threads together. */
  forget(): void {
    this.live.length = 0
  }

  /** Starts a thread of this program and runs it up to its first access. */
  start(body: Twin, thread: number, argument?: unknown): Running {
    pending.steps[thread] = 0
    pending.effects[thread] = 0
    pending.writes[thread] = 0
    pending.spunFrom[thread] = -1
    pending.idleFrom[thread] = -1
    pending.idleEpoch[thread] = 0
    pending.site[thread] = -1
    const generator = body.call(undefined, argument)
    const running: Running = {
      thread,
      generator,
      access: undefined,
      state: 'step',
      end: undefined,
      turn: -1,
    }
    this.goOn(running, undefined, false)
    return running
  }

  /** Performs the next access of the thread. Returns the bytes written and the result for the thread. */
  perform(running: Running, found: Uint8Array | undefined): ReturnType<Access['apply']> {
    const { thread, access } = running
    const done = access!.apply(found)
    this.steps++
    pending.steps[thread]++
    const changes =
      done.wrote !== undefined && (found === undefined || done.wrote.some((byte, i) => byte !== found[i]))
    if (changes) {
      pending.effects[thread]++
      pending.writes[thread]++
    }
    this.goOn(running, done.value, false)
    return done
  }

  private goOn(running: Running, value: unknown, failed: boolean): void {
    const { thread, generator } = running
    let given = { value, failed }
    for (;;) {
      running.access = undefined
      pending.current = thread
      pending.idleTurns = 0
      try {
        const result = given.failed ? generator.throw(given.value) : generator.next(given.value)
        if (result.done === true) {
          running.state = 'ended'
          running.end = { value: result.value, threw: false }
          requireEnded(this.names[thread] ?? FINAL, result.value)
        }
      } catch (error) {
        running.state = 'ended'
        running.end = { value: error, threw: true }
      } finally {
        pending.current = -1
      }
      if (pending.refusal !== undefined) throw asCheckError(pending.refusal)!
      if (running.state === 'ended') {
        throwIfWrong(running.end!)
        return
      }
      const next = nextOf(this.machine, thread)
      if ('access' in next) {
        running.access = next.access
        if (pending.spunFrom[thread] >= 0) {
          running.state = 'spins'
          running.turn = pending.spunFrom[thread]
        } else if (pending.idleFrom[thread] >= 0) {
          running.state = 'rests'
        }
        return
      }
      given = next.immediate
    }
  }
}

export function bodyOf(program: Program, thread: number, names: readonly string[]): Twin {
  return resumable(bodiesOf(program)[thread], thread, names[thread])
}

/** Throws when the error is in the check itself and not in the code under test. */
function throwIfWrong({ value, threw }: End): void {
  if (!threw) return
  const wrong = asCheckError(value)
  if (wrong !== undefined) throw wrong
  if (value instanceof Error && value.name === 'EndlessLoopError')
    throw new CheckError('ERR_CHECK_ENDLESS', value.message, { cause: value })
}
