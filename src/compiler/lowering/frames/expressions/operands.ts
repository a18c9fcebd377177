/** Values as parts of an expression. */
import { type Piece, type Rope, rope } from '../../../output/rope.ts'

/** A value in a form from which a member can be read. */
export function operand(value: Rope): Rope {
  return rope`(${value})`
}

/** The test that the right side of a logical operator is evaluated; `value` is the left side. */
export function conditionOf(operator: string, value: Piece): Rope {
  return operator === '&&' ? rope`${value}` : operator === '||' ? rope`!${value}` : rope`${value}==null`
}
