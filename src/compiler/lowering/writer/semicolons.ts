import type { Node } from '../../analysis/syntax.ts'

/** What may end without a semicolon. */
const endedByLine = new Set([
  'VariableDeclaration',
  'ExpressionStatement',
  'ReturnStatement',
  'ThrowStatement',
  'ExportDefaultDeclaration',
  'PropertyDefinition',
  'AccessorProperty',
])

const spacesAndComments = /(?:\s|\/\/.*|\/\*[^]*?\*\/)*/y
/** What continues a call on the line before. */
const continuing = /[([`+\-*/.<]|in\b|instanceof\b/y

/**
 * True for a statement or a field that ends with the body of an arrow function, and without a semicolon.
 * Nothing can continue an arrow function, so it ends there, whatever the next line begins with. The call that
 * is written around the function could be continued: a semicolon has to follow it.
 */
export function endsWithArrow({ type, end }: Node, source: string): boolean {
  if (!endedByLine.has(type) || source[end - 1] !== '}') return false
  spacesAndComments.lastIndex = end
  spacesAndComments.test(source)
  continuing.lastIndex = spacesAndComments.lastIndex
  return continuing.test(source)
}
