/** The functions that a method name can mean in one file. */
import type { Analysis } from './analysis.ts'
import type { Func } from './functions.ts'
import { bare, type Node, walk } from './syntax.ts'

/** The functions that a file stores under each property name. Null if it also stores other values there. */
export type Methods = ReadonlyMap<string, readonly Func[] | null>

export function methodsOf({ program, funcOf, bindingOf }: Analysis): Methods {
  const methods = new Map<string, Func[] | null>()
  const hooks = new Set<string>()
  const patterns = new Set<Node>()
  const give = (key: Node, value: Node | null): void => {
    const name = String(key.name ?? key.value)
    let given = value === null ? null : bare(value)
    while (given?.type === 'AssignmentExpression') given = bare(given.right)
    if (given === null || isNoFunction(given)) return
    const func = given.type === 'Identifier' ? bindingOf.get(given)?.target : funcOf.get(given)
    const list = methods.get(name)
    if (func === undefined || func === null) methods.set(name, null)
    else if (isHook(func)) hooks.add(name)
    else if (list === undefined) methods.set(name, [func])
    else if (list !== null && !list.includes(func)) list.push(func)
  }
  walk(program, node => {
    switch (node.type) {
      case 'ObjectPattern':
        for (const property of node.properties) patterns.add(property)
        break
      case 'Property':
      case 'MethodDefinition':
      case 'PropertyDefinition':
        if (node.computed || patterns.has(node)) break
        if (node.kind === 'get' || node.kind === 'set')
          methods.set(String(node.key.name ?? node.key.value), null)
        else give(node.key, node.value)
        break
      case 'AssignmentExpression': {
        const left = bare(node.left)
        if (left.type === 'MemberExpression' && !left.computed) give(left.property, node.right)
        break
      }
      default:
    }
  })
  // A hook that the file never replaces is replaced by other code.
  for (const name of hooks) if (!methods.has(name)) methods.set(name, null)
  return methods
}

/** True for a value that cannot be called. */
function isNoFunction({ type, name }: Node): boolean {
  switch (type) {
    case 'Literal':
    case 'TemplateLiteral':
    case 'ArrayExpression':
    case 'ObjectExpression':
    case 'BinaryExpression':
    case 'UnaryExpression':
    case 'UpdateExpression':
      return true
    default:
      return name === 'undefined'
  }
}

/** A function that does nothing, or only throws. Such a function is meant to be replaced. */
function isHook({ node }: Func): boolean {
  if (node.body?.type !== 'BlockStatement') return false
  const [first] = node.body.body
  return first === undefined || first.type === 'ThrowStatement'
}
