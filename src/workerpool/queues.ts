import type { ExecOptions } from './options.ts'
import type { Resolver } from './promise.ts'

/** A waiting task, for a queue. */
export interface Task {
  readonly method: string
  readonly params?: readonly unknown[] | null
  readonly resolver: Resolver
  /** Milliseconds that it may take, from its start. */
  timeout: number | null
  readonly options?: ExecOptions
}

export interface TaskQueue {
  push(task: Task): void
  pop(): Task | undefined
  size(): number
  contains(task: Task): boolean
  clear(): void
}

class ListQueue {
  protected readonly tasks: Task[] = []

  push(task: Task): void {
    this.tasks.push(task)
  }

  size(): number {
    return this.tasks.length
  }

  contains(task: Task): boolean {
    return this.tasks.includes(task)
  }

  clear(): void {
    this.tasks.length = 0
  }
}

/** First in, first out. */
class FIFOQueue extends ListQueue implements TaskQueue {
  pop(): Task | undefined {
    return this.tasks.shift()
  }
}

/** Last in, first out. */
class LIFOQueue extends ListQueue implements TaskQueue {
  pop(): Task | undefined {
    return this.tasks.pop()
  }
}

const methods = ['push', 'pop', 'size', 'contains', 'clear'] as const

export function queueOf(strategy: 'fifo' | 'lifo' | TaskQueue): TaskQueue {
  if (strategy === 'fifo') return new FIFOQueue()
  if (strategy === 'lifo') return new LIFOQueue()
  if (typeof strategy === 'string') throw new Error(`Unknown queue strategy: ${String(strategy)}`)
  for (const method of methods)
    if (typeof strategy[method] !== 'function')
      throw new Error(`Queue strategy must implement method: ${method}`)
  return strategy
}
