/** `return` statements, which close the loops around them, and pass a `finally`. */
import { type Piece, type Rope, rope } from '../../../output/rope.ts'
import type { Context } from '../../writer/context.ts'

/** A `return`, after it closes the loops around it, through the `finally` around it. */
export function returning(cx: Context, value: Rope | null, prefix: string, word: Piece): Rope {
  const { closing, ending, building } = cx
  // A returned function must not take its name from the variable that holds it.
  const given = value === null ? rope`void 0` : rope`(0, ${value})`
  // `this` is read last, because the code that closes a loop may have called `super`.
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
