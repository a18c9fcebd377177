/**
 * How the checker knows a function that it has instrumented. Each module that is instrumented gets a random
 * mark, as a text that each of its functions and classes contains; the module registers the mark when it
 * is evaluated. The text of any other function has no registered mark, also when heddle has compiled it for
 * tasks: such a function has a twin too, whose accesses are no steps.
 */
import { pending } from '../machine/pending.ts'

/** What each mark begins with. */
export const MARK = 'heddle_'
const FORM = /heddle_[0-9a-z]{10}/g

const { toString } = Function.prototype

/** What is known of functions, by their text. */
const known = new WeakMap<object, boolean>()

/** Whether the function or class is of an instrumented module, or the checker vouches for it. */
export function isInstrumented(fn: object): boolean {
  let answer = known.get(fn)
  if (answer === undefined) known.set(fn, (answer = pending.vouched.has(fn) || hasMark(fn)))
  return answer
}

function hasMark(fn: object): boolean {
  return (
    toString
      .call(fn)
      .match(FORM)
      ?.some(mark => pending.marks.has(mark)) === true
  )
}
