/**
 * Whether a concurrent history could have been a sequential one. Each operation has a start and an end. There
 * must be an order of all operations that the model allows, in which an operation that ended before another
 * began comes first.
 */
export interface Operation {
  readonly who: number
  readonly name: string
  readonly args: readonly unknown[]
  start: number
  /** Infinity: it never ended, and may have taken effect or not. */
  end: number
  result: unknown
}

export interface Model<State> {
  readonly initial: State
  /**
   * The state after the operation with that result, or undefined if it is not allowed here. States are plain
   * data.
   */
  step(state: State, operation: Operation): State | undefined
  /** Another possible effect: a cancelled operation may have taken effect or not. */
  also?(state: State, operation: Operation): State | undefined
}

/** An order that the model allows, as indexes into the history; null if there is none. */
export function linearize<State>(history: readonly Operation[], model: Model<State>): number[] | null {
  if (history.length > 30) throw new RangeError('a history of at most 30 operations')
  const all = (1 << history.length) - 1
  const seen = new Set<string>()
  const order: number[] = []

  const search = (done: number, state: State): boolean => {
    if (done === all) return true
    const key = `${done}:${JSON.stringify(state)}`
    if (seen.has(key)) return false
    seen.add(key)
    let firstEnd = Infinity
    for (let at = 0; at < history.length; at++) {
      if ((done & (1 << at)) === 0) firstEnd = Math.min(firstEnd, history[at].end)
    }
    let onlyUnended = true
    for (let at = 0; at < history.length; at++) {
      if ((done & (1 << at)) !== 0) continue
      if (history[at].end !== Infinity) onlyUnended = false
      if (history[at].start > firstEnd) continue
      for (const next of [model.step(state, history[at]), model.also?.(state, history[at])]) {
        if (next === undefined) continue
        order.push(at)
        if (search(done | (1 << at), next)) return true
        order.pop()
      }
    }
    // An operation that never ended need not have happened.
    return onlyUnended
  }
  return search(0, model.initial) ? order : null
}

/** For a failure's message. */
export function show(history: readonly Operation[]): string {
  return [...history]
    .sort((a, b) => a.start - b.start)
    .map(
      ({ who, name, args, start, end, result }) =>
        `${String(start).padStart(4)} – ${String(end).padStart(8)}  task ${who}: ${name}(${args.join(', ')}) → ${JSON.stringify(result)}`,
    )
    .join('\n')
}
