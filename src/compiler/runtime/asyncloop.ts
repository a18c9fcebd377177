/** The iteration of a `for await`, one awaited step at a time. The compiler writes the loop itself. */

type Settled = { value: unknown; done: boolean }
interface AsyncSource {
  next(): unknown
  return?: ((value?: unknown) => unknown) | undefined
}

export class AsyncLoop {
  /** The last step was the end. */
  done = false
  /** A value was taken and no further step has begun: an exit of the loop must close the iterator. */
  open = false
  /** The loop's body threw. */
  threw = false
  readonly #source: AsyncSource
  readonly #next: () => unknown
  #return: ((value?: unknown) => unknown) | null = null

  constructor(iterable: any, message: string) {
    const method = iterable[Symbol.asyncIterator]
    if (method !== undefined && method !== null) this.#source = Reflect.apply(method, iterable, [])
    else {
      const plain = iterable[Symbol.iterator]
      if (typeof plain !== 'function') throw new TypeError(message)
      this.#source = fromSync(Reflect.apply(plain, iterable, []))
    }
    if (typeof this.#source !== 'object' || this.#source === null) {
      throw new TypeError('Result of the Symbol.asyncIterator method is not an object')
    }
    this.#next = this.#source.next
  }

  /** Begins a step: the caller awaits the returned value. */
  next(): unknown {
    this.open = false
    return Reflect.apply(this.#next, this.#source, [])
  }

  /** Ends a step with the awaited result. Returns the value, or sets `done`. */
  take(step: any): unknown {
    if (!isObject(step)) throw new TypeError(`Iterator result ${String(step)} is not an object`)
    if (step.done) {
      this.done = true
      return undefined
    }
    const { value } = step
    this.open = true
    return value
  }

  /** True if the iterator has a `return` to call and await. */
  closes(): boolean {
    const method = this.#source.return
    if (method === undefined || method === null) return false
    this.#return = method
    return true
  }

  /** Begins to close: the caller awaits the returned value. */
  close(): unknown {
    return Reflect.apply(this.#return!, this.#source, [])
  }

  closed(result: unknown): void {
    if (!isObject(result)) throw new TypeError(`${String(result)} is not an object`)
  }
}

function isObject(value: unknown): boolean {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}

/** A synchronous iterator as an asynchronous one: its values are awaited. */
function fromSync(iterator: any): AsyncSource {
  const { next } = iterator
  const settle = (step: any, closes: boolean): Promise<Settled> => {
    if (!isObject(step)) throw new TypeError(`Iterator result ${String(step)} is not an object`)
    const { done, value } = step
    const finished = Boolean(done)
    return Promise.resolve(value).then(
      settled => ({ value: settled, done: finished }),
      error => {
        if (!finished && closes) iterator.return?.()
        throw error
      },
    )
  }
  const attempt = (run: () => Promise<Settled>): Promise<Settled> => {
    try {
      return run()
    } catch (error) {
      return Promise.reject(error)
    }
  }
  return {
    next: () => attempt(() => settle(Reflect.apply(next, iterator, []), true)),
    return: value =>
      attempt(() => {
        const method = iterator.return
        if (method === undefined || method === null) return Promise.resolve({ value, done: true })
        return settle(Reflect.apply(method, iterator, []), false)
      }),
  }
}
