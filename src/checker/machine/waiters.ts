import { CheckError } from '../errors.ts'

/** A sleeper in `Atomics.wait`, or a waiter for the promise of `Atomics.waitAsync`. Lists are FIFO. */
export interface Sleeper {
  /** The sleeping thread; for waitAsync the thread that created the promise. */
  readonly thread: number
  /** The cell of the waiter list. */
  readonly cell: number
  /** Whether its timeout may pass. */
  readonly finite: boolean
  readonly async: boolean
  state: 'asleep' | 'woken' | 'timed-out'
  /** The event that woke it. */
  wokenAt: number
}

export class WaiterLists {
  private readonly lists = new Map<number, Sleeper[]>()

  clear(): void {
    if (this.lists.size > 0) this.lists.clear()
  }

  join(sleeper: Sleeper): void {
    const list = this.lists.get(sleeper.cell)
    if (list === undefined) this.lists.set(sleeper.cell, [sleeper])
    else list.push(sleeper)
  }

  leave(sleeper: Sleeper): void {
    const list = this.lists.get(sleeper.cell)
    const at = list?.indexOf(sleeper) ?? -1
    if (list === undefined || at < 0) throw new Error('the sleeper is not on its waiter list')
    list.splice(at, 1)
  }

  /** Takes the oldest sleeper off the list, or undefined. */
  shift(cell: number): Sleeper | undefined {
    return this.lists.get(cell)?.shift()
  }

  count(cell: number): number {
    return this.lists.get(cell)?.length ?? 0
  }
}

/** The promise that `Atomics.waitAsync` returns inside a check: only `await` can take its value. */
export class CheckedPromise {
  readonly sleeper: Sleeper

  constructor(sleeper: Sleeper) {
    this.sleeper = sleeper
  }

  /** Callbacks would run where the explorer does not see them. */
  // oxlint-disable-next-line unicorn/no-thenable
  then(): never {
    throw new CheckError(
      'ERR_CHECK_PROMISE',
      'inside a check the promise of Atomics.waitAsync can only be awaited; move the callback of `then` into a separate thread that awaits the promise',
    )
  }
}
