/**
 * Calls that must not wait. The checker runs an async function to its end where it is called, which is right
 * if the caller awaits the promise there. Otherwise the function would run concurrently with its caller:
 *
 *     const later = () => save()     // `save` is async, `later` is not
 *     later()                        // the caller continues while `save` waits
 *
 * So every call that is neither awaited nor returned compares how often its thread has waited before and
 * after (`unawaited` of the runtime), except calls of functions that cannot wait.
 */
import { type Analysis, globalName } from '../../analysis/analysis.ts'
import type { Func } from '../../analysis/functions.ts'
import { type Rope, rope } from '../../output/rope.ts'
import { bare, isFunction, type Node, walk } from '../../analysis/syntax.ts'
import type { Names } from '../writer/names.ts'
import { awaitedIn } from './implicitcode.ts'

export class Waits {
  readonly #analysis: Analysis
  readonly #names: Names
  readonly #may = new Map<Func, boolean>()

  constructor(analysis: Analysis, names: Names) {
    this.#analysis = analysis
    this.#names = names
  }

  /** The steps of a call that is not awaited; `target` is the function if it is certain. */
  watched(steps: Rope, target: Func | null): Rope {
    if (target !== null && !this.#mayWait(target)) return steps
    return rope`${this.#names.runtime('unawaited')}(${this.#names.runtime('waited')}(), ${steps})`
  }

  /** True for an async function, and for a function that returns the value of a call. */
  #mayWait(func: Func): boolean {
    const known = this.#may.get(func)
    if (known !== undefined) return known
    let may = func.isAsync
    walk(func.node, node => {
      if (node !== func.node && isFunction(node)) return false
      may ||= awaitedIn(node).some(call => !this.#isAtomic(call))
      return !may
    })
    this.#may.set(func, may)
    return may
  }

  #isAtomic(call: Node): boolean {
    const callee = bare(call.callee)
    return (
      callee.type === 'MemberExpression' && globalName(callee.object, this.#analysis.bindingOf) === 'Atomics'
    )
  }
}
