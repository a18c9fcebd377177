/** A test with a call that suspends before every statement and around every literal. */
import { MagicString } from 'magic-string'
import { children, directives, isFunction, type Node } from '../../src/compiler/analysis/syntax.ts'
import { parseSync } from 'oxc-parser'

/** The text, or null when there is no place for such a call. `name` is the called function. */
export function withStops(source: string, name: string): string | null {
  const { program, errors } = parseSync('test.cjs', source, {
    sourceType: 'commonjs',
    lang: 'js',
    preserveParens: true,
    showSemanticErrors: false,
  } as never)
  if (errors.length > 0) return null
  const text = new MagicString(source)
  let count = 0
  const lists = (node: Node): Node[][] => {
    if (node.type === 'SwitchCase') return [node.consequent]
    if (node.type === 'BlockStatement' || node.type === 'StaticBlock' || node.type === 'Program')
      return [node.body]
    return []
  }
  const isKey = (node: Node, parent: Node): boolean =>
    parent.key === node && !parent.computed && parent.type !== 'ExpressionStatement'
  const visit = (node: Node, parent: Node | null): void => {
    for (const list of lists(node)) {
      const first = directives(list).length
      for (const statement of list.slice(first)) {
        if (isFunction(statement) || /^(?:Import|Export)/.test(statement.type)) continue
        text.appendLeft(statement.start, `${name}();`)
        count++
      }
    }
    if (node.type === 'ExpressionStatement' && typeof node.directive === 'string') return
    if (node.type === 'ImportExpression') return
    if (node.type === 'Literal' && parent !== null && !isKey(node, parent)) {
      text.appendLeft(node.start, ` ${name}(`).appendRight(node.end, ')')
      count++
    }
    for (const child of children(node)) visit(child, node)
  }
  const top = program as unknown as Node
  // The outermost level makes the function that is the test: nothing can stop there.
  for (const child of children(top)) visit(child, top)
  return count === 0 ? null : text.toString()
}
