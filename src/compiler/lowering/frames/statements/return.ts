/** What a `return` does on its way out: it closes the loops around it, and shows itself to a `finally`. */
import { type Piece, type Rope, rope } from '../../../output/rope.ts'
import type { Context } from '../../writer/context.ts'

/** A `return`, by way of what it has to close, and of the `finally` that has to see it. */
export function returning(cx: Context, value: Rope | null, prefix: string, word: Piece): Rope {
  const { closing, ending, building } = cx
  // A function that is returned takes no name from what holds it on the way.
  const given = value === null ? rope`void 0` : rope`(0, ${value})`
  // `this` is read last: what closes a loop may have called `super`.
  const built = (made: Rope): Rope => (building === undefined ? made : rope`${building}(${made}, () => this)`)
  if (closing === undefined && ending === undefined)
    return value === null && building === undefined ? rope`${word};` : rope`${word} ${built(value ?? given)};`
  const close = closing === undefined ? '' : closingText(closing)
  if (ending !== undefined) {
    return rope`{ ${ending.value} = ${given}; ${close} ${ending.how} = 2; break ${ending.label}; }`
  }
  const result = `${prefix}x`
  return rope`{ const ${result} = ${given}; ${close} ${word} ${built(rope`${result}`)}; }`
}

/** Closes the loops over these cursors. */
export function closingText(cursors: readonly string[]): string {
  return cursors.map(cursor => `if(${cursor}!==null)${cursor}.close();`).join('')
}
