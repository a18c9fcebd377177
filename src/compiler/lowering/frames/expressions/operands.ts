/** How a value stands in the expression around it. */
import { type Piece, type Rope, rope } from '../../../output/rope.ts'

/** A value in a form that a member can be taken of. */
export function operand(value: Rope): Rope {
  return rope`(${value})`
}

/** The test that the right side of a logical operator is evaluated, `value` being the left. */
export function conditionOf(operator: string, value: Piece): Rope {
  return operator === '&&' ? rope`${value}` : operator === '||' ? rope`!${value}` : rope`${value}==null`
}
