/**
 * What a thread does is decided by what its reads find, and by nothing else. So each thread is a tree: at
 * each node it wants to do one access, or has ended, and what the access finds leads to a child. A tree is
 * grown where a search comes to it, by running the thread alone, from a set-up of its own, with the reads
 * answered as the way to the node says.
 */
import type { Twin } from '../../coroutine/core/coroutine.ts'
import { asCheckError, CheckError } from '../errors.ts'
import { Machine } from '../machine/machine.ts'
import type { Memory } from '../machine/memory.ts'
import { pending } from '../machine/pending.ts'
import { bodiesOf, namesOf, type Program, resumable, type Setup } from '../machine/program.ts'
import { nextOf } from './access.ts'
import type { Access } from './event.ts'

/**
 *   step    it stands before an access
 *   ended   it returned, or threw
 *   spins   its last turn of a loop changed nothing: the turns before it can be left out
 *   rests   it took more turns in a row than a check allows, in a loop that only reads and changes something of its own
 */
export type State = 'step' | 'ended' | 'spins' | 'rests'

/** A thread after some of its accesses. */
export interface ThreadNode {
  readonly thread: number
  /** How many accesses it has made. */
  readonly depth: number
  readonly parent: ThreadNode | undefined
  /** What its last access found. */
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

/** The running form of a thread. */
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
  /** Accesses performed, by all runs. */
  steps = 0
  private readonly turns: number
  private readonly roots: (ThreadNode | undefined)[] = []
  /** The last run of each thread and the node at which it stands: most searches go on from there. */
  private readonly live: ({ node: ThreadNode; running: Running } | undefined)[] = []

  constructor(memory: Memory, setup: Setup, turns: number) {
    this.memory = memory
    this.setup = setup
    this.turns = turns
    this.machine = new Machine(memory)
  }

  /** Sets the check up anew. */
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
        `the set-up returned ${count} thread bodies, and ${this.count} the last time; it must return the same ones every time`,
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

  /** Where a thread comes to when the access at this node finds these bytes. */
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

  /** The thread, running, where a node says. */
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

  /** Whatever runs is given up: another run of all threads comes between. */
  forget(): void {
    this.live.length = 0
  }

  /** A thread of this program, at its first access. */
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

  /**
   * Lets the thread perform the access before which it stands. Returns what it wrote, and what the thread was
   * given.
   */
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

/** The check itself is wrong, not the code under it. */
function throwIfWrong({ value, threw }: End): void {
  if (!threw) return
  const wrong = asCheckError(value)
  if (wrong !== undefined) throw wrong
  if (value instanceof Error && value.name === 'EndlessLoopError')
    throw new CheckError('ERR_CHECK_ENDLESS', value.message, { cause: value })
}
