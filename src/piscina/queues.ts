import assert from 'node:assert'
import type { queueOptionsSymbol } from './symbols.ts'

/** A task as a queue sees it. */
export interface Task {
  readonly [queueOptionsSymbol]: object | null
}

/** A task for load balancers and queues of the program. */
export interface PiscinaTask extends Task {
  taskId: number
  filename: string
  name: string
  created: number
  isAbortable: boolean
}

/** A queue of tasks that wait for a worker. */
export interface TaskQueue {
  readonly size: number
  shift(): Task | null
  remove(task: Task): void
  push(task: Task): void
  unshift?(task: Task): void
}

export function isTaskQueue(value: unknown): value is TaskQueue {
  const queue = value as TaskQueue | null
  return (
    typeof queue === 'object' &&
    queue !== null &&
    'size' in queue &&
    typeof queue.shift === 'function' &&
    typeof queue.remove === 'function' &&
    typeof queue.push === 'function'
  )
}

/** A queue in a plain array. */
export class ArrayTaskQueue implements TaskQueue {
  tasks: Task[] = []

  get size(): number {
    return this.tasks.length
  }

  shift(): Task | null {
    return this.tasks.shift() ?? null
  }

  push(task: Task): void {
    this.tasks.push(task)
  }

  unshift(task: Task): void {
    this.tasks.unshift(task)
  }

  remove(task: Task): void {
    const at = this.tasks.indexOf(task)
    assert.notStrictEqual(at, -1)
    this.tasks.splice(at, 1)
  }
}

const BLOCK = 2048

/** A part of a queue: tasks from `first` to before `end`. A removed task leaves a gap. */
class Block {
  readonly tasks: (Task | undefined)[] = Array.from({ length: BLOCK })
  first: number
  end: number
  next: Block | null = null

  constructor(at: number) {
    this.first = at
    this.end = at
  }
}

/** A queue in blocks of 2048: taking the first task moves nothing, and an empty block is dropped. */
export class FixedQueue implements TaskQueue {
  #front = new Block(0)
  #back: Block = this.#front
  #size = 0

  get size(): number {
    return this.#size
  }

  isEmpty(): boolean {
    return this.#size === 0
  }

  push(task: Task): void {
    if (this.#back.end === BLOCK) {
      const block = new Block(0)
      this.#back.next = block
      this.#back = block
    }
    this.#back.tasks[this.#back.end++] = task
    this.#size++
  }

  unshift(task: Task): void {
    if (this.#front.first === 0) {
      const block = new Block(BLOCK)
      block.next = this.#front
      this.#front = block
    }
    this.#front.tasks[--this.#front.first] = task
    this.#size++
  }

  shift(): Task | null {
    for (;;) {
      const block = this.#front
      if (block.first === block.end) {
        if (block.next === null) return null
        this.#front = block.next
        continue
      }
      const task = block.tasks[block.first]
      block.tasks[block.first++] = undefined
      if (task === undefined) continue
      this.#size--
      return task
    }
  }

  remove(task: Task): void {
    for (let block: Block | null = this.#front; block !== null; block = block.next) {
      const at = block.tasks.indexOf(task)
      if (at < 0) continue
      block.tasks[at] = undefined
      this.#size--
      return
    }
  }
}
