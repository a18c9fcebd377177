/**
 * How the checker recognizes a function that it has instrumented. Each instrumented module gets a random
 * mark. The text of each of its functions and classes contains the mark, and the module registers it when it
 * is evaluated. No other function has a registered mark, also not one that heddle has compiled for tasks:
 * that has a twin too, but its accesses are not steps.
 */
import { pending } from '../machine/pending.ts'

/** The prefix of each mark. */
export const MARK = 'heddle_'
const FORM = /heddle_[0-9a-z]{10}/g

const { toString } = Function.prototype

/** The answers so far. */
const known = new WeakMap<object, boolean>()

/** Whether the function or class is from an instrumented module, or the checker vouches for it. */
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
