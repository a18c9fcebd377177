import type { Node } from '../../analysis/syntax.ts'

/** Statements that may end without a semicolon. */
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
/** Text that continues a call on the line before. */
const continuing = /[([`+\-*/.<]|in\b|instanceof\b/y

/**
 * True for a statement or field that ends with the body of an arrow function and has no semicolon. Nothing
 * can continue an arrow function, so it ends there. But the next line could continue the call that is written
 * around the function, so a semicolon must follow it.
 */
export function endsWithArrow({ type, end }: Node, source: string): boolean {
  if (!endedByLine.has(type) || source[end - 1] !== '}') return false
  spacesAndComments.lastIndex = end
  spacesAndComments.test(source)
  continuing.lastIndex = spacesAndComments.lastIndex
  return continuing.test(source)
}
