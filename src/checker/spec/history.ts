import { plain as plainCall } from '../instrument/foreign.ts'
import { trust } from '../instrument/intrinsics.ts'
import { isInstrumented } from '../instrument/marks.ts'
import { type Twin, twin, twinOf } from '../../coroutine/core/coroutine.ts'
import { ADD, LOAD } from '../machine/operations.ts'
import { effect, op, pending, realOf, vouchFor } from '../machine/pending.ts'

/**
 * The calls that the threads of one execution made of an object, with their results. Create it in the set-up.
 *
 * The order of two calls must not depend on the order in which the explorer runs independent steps. So a
 * history has a clock in shared memory. A call reads it when it begins and increments it when it ends. These
 * are ordinary steps, so each order of them is explored.
 *
 *   caller 1                     caller 2
 *   --------                     --------
 *   began = load(clock): 0
 *   …
 *   ended = add(clock, 1): 0
 *                                began = load(clock): 1, more than caller 1's `ended`: it came after
 */
export interface Call {
  /** The name of the thread; 'set-up' outside of threads. */
  readonly thread: string
  readonly operation: string
  readonly args: readonly unknown[]
  readonly began: number
  /** Infinity: the call has not ended, because the thread died or the execution ended first. */
  ended: number
  result: unknown
  /** True: the call threw `result`. */
  threw: boolean
}

type Method = (...args: any[]) => unknown
type Stops<T> = Generator<number, T, unknown>

export class History {
  readonly calls: Call[] = []
  private readonly clock = new Int32Array(new SharedArrayBuffer(4))

  constructor() {
    pending.clocks.add(realOf(this.clock))
  }

  /**
   * The same object, with every call of its methods recorded. Fields and getters are those of the object
   * itself. Calls that a method makes of its own object are not recorded.
   */
  of<T extends object>(object: T): T {
    const methods = new Map<PropertyKey, Method>()
    const get = (target: T, key: PropertyKey): unknown => {
      const found: unknown = Reflect.get(target, key, target)
      if (typeof found !== 'function' || typeof key === 'symbol') return found
      let recorded = methods.get(key)
      if (recorded === undefined) {
        recorded = this.recorded(String(key), found as Method, target)
        methods.set(key, recorded)
      }
      return recorded
    }
    trust(get)
    return new Proxy(object, { get })
  }

  private recorded(operation: string, method: Method, self: object): Method {
    const plain = (...args: unknown[]): unknown => {
      if (pending.current >= 0) effect()
      const call = this.begin(operation, args, Atomics.load(this.clock, 0))
      try {
        call.result = plainCall(method, self, [...args], operation)
      } catch (error) {
        call.threw = true
        call.result = error
      }
      call.ended = Atomics.add(this.clock, 0, 1)
      return answer(call)
    }
    const stepwise: Twin = (...args: unknown[]) => this.steps(operation, method, self, args)
    return Object.assign(vouchFor(plain), { [twin]: stepwise })
  }

  private *steps(operation: string, method: Method, self: object, args: readonly unknown[]): Stops<unknown> {
    effect()
    const call = this.begin(operation, args, (yield op(LOAD, -1, this.clock, 0)) as number)
    const resumable = isInstrumented(method) ? twinOf(method) : undefined
    try {
      call.result =
        resumable === undefined
          ? plainCall(method, self, [...args], operation)
          : yield* Reflect.apply(resumable, self, args as unknown[])
    } catch (error) {
      call.threw = true
      call.result = error
    }
    const ended = (yield op(ADD, -1, this.clock, 0, 1)) as number
    effect()
    call.ended = ended
    return answer(call)
  }

  private begin(operation: string, args: readonly unknown[], began: number): Call {
    const thread =
      pending.current < 0 ? 'set-up' : (pending.names[pending.current] ?? `thread ${pending.current}`)
    const call: Call = { thread, operation, args, began, ended: Infinity, result: undefined, threw: false }
    this.calls.push(call)
    return call
  }
}

function answer(call: Call): unknown {
  if (call.threw) throw call.result
  return call.result
}
