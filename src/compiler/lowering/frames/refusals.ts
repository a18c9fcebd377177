/** Code that cannot be entered in the middle, or only at a cost that a generator does not have. */
import type { Analysis } from '../../analysis/analysis.ts'
import type { Func } from '../../analysis/functions.ts'
import {
  bare,
  boundNames,
  children,
  contains,
  isClass,
  isFunction,
  type Node,
  walk,
} from '../../analysis/syntax.ts'

/** Why the function should be a generator, or null if it can unwind. */
export function reasonAgainst(func: Func, stopping: ReadonlySet<Node>, analysis: Analysis): string | null {
  let reason: string | null = null
  const refuse = (why: string): void => {
    reason ??= why
  }
  const stops = (node: Node | null | undefined): boolean => node != null && stopping.has(node)
  for (const inner of allInner(func)) {
    if (inner.refusals.some(({ code }) => code === 'eval' || code === 'with')) {
      refuse('a function inside uses `eval` or `with`')
    }
  }
  for (const one of [func, ...allInner(func)]) {
    if (needsDefaultScope(one, analysis, one === func)) {
      refuse('code outside the body sets a parameter')
    }
  }
  if (!func.strict && func.usesArguments) {
    const scope = analysis.scopeOf.get(func.node)!
    for (const binding of scope.bindings.values()) {
      if (binding.kind !== 'parameter') continue
      const isRead = binding.references.length > 0
      if (binding.written || (isRead && givesArgumentsAway(func.node.body, analysis))) {
        refuse('`arguments` follows its parameters')
      }
    }
  }
  const visit = (node: Node, top: boolean): void => {
    if (isFunction(node)) {
      if (node.type === 'FunctionDeclaration' && !top && !func.strict) {
        refuse('sloppy code declares a function in a block')
      }
      return
    }
    switch (node.type) {
      case 'VariableDeclaration':
        if (node.kind.includes('using')) refuse('`using` disposes of its variables')
        for (const { id } of node.declarations) if (stops(id)) refuse('a pattern can suspend')
        break
      case 'AssignmentExpression': {
        const left = bare(node.left)
        if ((left.type === 'ObjectPattern' || left.type === 'ArrayPattern') && stops(left)) {
          refuse('a pattern can suspend')
        }
        if (isArguments(left)) refuse('`arguments` is written')
        break
      }
      case 'UpdateExpression':
        if (isArguments(bare(node.argument))) refuse('`arguments` is written')
        break
      case 'ForInStatement':
      case 'ForOfStatement':
        if (stops(node.left)) refuse('a pattern can suspend')
        break
      case 'ForStatement':
        if (headIsCaptured(node, analysis)) refuse('the head of a loop has a closure')
        break
      case 'CatchClause':
        if (stops(node.param)) refuse('a pattern can suspend')
        if (redeclares(node)) refuse('a `var` has the name of the caught error')
        break
      case 'SwitchStatement':
        for (const { test } of node.cases) if (stops(test)) refuse('a case can suspend')
        break
      case 'LabeledStatement':
        if (node.body.type === 'FunctionDeclaration') refuse('a function has a label')
        break
      case 'TSEnumDeclaration':
      case 'TSModuleDeclaration':
        refuse('it declares an enum or a namespace')
        break
      case 'ObjectExpression':
        if (stops(node) && node.properties.some(isMethod))
          refuse('a method is in an object literal that can suspend')
        break
      case 'TaggedTemplateExpression':
        if (bare(node.tag).type === 'MemberExpression' && stops(node)) refuse('a tag is a method')
        break
      case 'JSXElement':
      case 'JSXFragment':
        if (stops(node)) refuse('JSX can suspend')
        break
      case 'UnaryExpression':
        if (node.operator === 'delete' && bare(node.argument).type === 'ChainExpression' && stops(node)) {
          refuse('`delete` of a chain can suspend')
        }
        break
      case 'CallExpression':
        if (bare(node.callee).type === 'ChainExpression' && node.callee.type !== 'ChainExpression') {
          if (stops(node)) refuse('a chain in parentheses is called')
        }
        break
      default:
    }
    for (const child of children(node)) visit(child, top && node === func.node.body)
  }
  visit(func.node.body, true)
  return reason
}

/**
 * True if the separate scope of the defaults matters: if they use later names or, in the function that
 * unwinds itself, if they make closures.
 */
function needsDefaultScope(func: Func, { bindingOf, scopeOf }: Analysis, isItself: boolean): boolean {
  const own = scopeOf.get(func.node)!
  let apart = false
  const params = (func.node.params ?? []) as Node[]
  for (const param of params) {
    if (param.type === 'Identifier') continue
    const named = boundNames(param)
    walk(param, node => {
      if (isItself && (isFunction(node) || isClass(node))) apart = true
      if (node.type !== 'Identifier' || named.includes(node)) return !apart
      const binding = bindingOf.get(node)
      if (binding == null || binding.scope !== own) return !apart
      const at = params.flatMap(other => boundNames(other)).find(({ name }) => name === binding.name)
      if (at === undefined || at.start >= node.start || isSetBy(param, at, node)) apart = true
      return !apart
    })
  }
  return apart
}

/** True if the use is in the default of the name that it uses: `(x = x) => …`. */
function isSetBy(param: Node, name: Node, use: Node): boolean {
  let found = false
  walk(param, node => {
    if (node.type === 'AssignmentPattern' && contains(node.left, name) && contains(node.right, use))
      found = true
    return !found
  })
  return found
}

/** `catch (x) { var x = 1 }`: the write goes to the caught error, the declaration is another variable. */
function redeclares({ param, body }: Node): boolean {
  if (param?.type !== 'Identifier') return false
  let found = false
  walk(body, node => {
    if (isFunction(node)) return false
    if (node.type === 'VariableDeclaration' && node.kind === 'var') {
      for (const { id } of node.declarations)
        if (boundNames(id).some(({ name }) => name === param.name)) found = true
    }
    return !found
  })
  return found
}

/**
 * True if a closure in the head of a `for` captures its variables: the first turn has others than the next.
 */
function headIsCaptured({ init, test, update }: Node, { bindingOf }: Analysis): boolean {
  if (init?.type !== 'VariableDeclaration' || init.kind === 'var') return false
  let found = false
  for (const part of [init, test, update]) {
    if (part === null) continue
    walk(part, node => {
      if (isFunction(node) || isClass(node)) found = true
      return !found
    })
  }
  if (!found) return false
  return init.declarations.some(({ id }: Node) =>
    boundNames(id).some(name => bindingOf.get(name)?.captured === true),
  )
}

/** Array methods that only read their receiver. */
const readers: ReadonlySet<string> = new Set(['slice', 'concat', 'join', 'indexOf', 'includes'])

/**
 * True if `arguments` is passed on or written: code that gets it may write to it, and so to the parameters.
 */
function givesArgumentsAway(body: Node, { bindingOf }: Analysis): boolean {
  let away = false
  const isOnlyRead = (node: Node, parent: Node, above: Node | null): boolean => {
    switch (parent.type) {
      case 'SpreadElement':
      case 'ForInStatement':
      case 'ForOfStatement':
        return true
      case 'CallExpression': {
        const callee = bare(parent.callee)
        if (callee.type !== 'MemberExpression' || callee.computed) return false
        if (callee.property.name === 'apply') return parent.arguments[1] === node
        const method = bare(callee.object)
        return (
          callee.property.name === 'call' &&
          parent.arguments[0] === node &&
          method.type === 'MemberExpression' &&
          !method.computed &&
          readers.has(method.property.name)
        )
      }
      case 'MemberExpression':
        return parent.object === node && above !== null && isRead(parent, above)
      default:
        return false
    }
  }
  const visit = (node: Node, parent: Node, above: Node | null): void => {
    if (away || (isFunction(node) && node.type !== 'ArrowFunctionExpression')) return
    if (node.type === 'Identifier' && node.name === 'arguments' && (bindingOf.get(node) ?? null) === null) {
      const isKey = (parent.key === node || parent.property === node) && !parent.computed && !parent.shorthand
      if (!isKey && !isOnlyRead(node, parent, above)) away = true
    }
    for (const child of children(node)) visit(child, node, parent)
  }
  for (const child of children(body)) visit(child, body, null)
  return away
}

/** True if a member is only read there: not written, deleted, or called as a method. */
function isRead(member: Node, parent: Node): boolean {
  switch (parent.type) {
    case 'AssignmentExpression':
    case 'AssignmentPattern':
    case 'ForInStatement':
    case 'ForOfStatement':
      return parent.left !== member
    case 'CallExpression':
      return parent.callee !== member
    case 'UnaryExpression':
      return parent.operator !== 'delete'
    case 'UpdateExpression':
    case 'ArrayPattern':
    case 'RestElement':
    case 'TaggedTemplateExpression':
    case 'ParenthesizedExpression':
      return false
    case 'Property':
      return parent.key === member || !isTarget(parent)
    default:
      return true
  }
}

/**
 * A property whose value is a member may be part of a pattern; the node alone does not show it, so it counts
 * as one.
 */
function isTarget({ value }: Node): boolean {
  return value.type === 'MemberExpression'
}

function isArguments(target: Node): boolean {
  return (
    (target.type === 'MemberExpression' &&
      target.object.type === 'Identifier' &&
      target.object.name === 'arguments') ||
    (target.type === 'Identifier' && target.name === 'arguments')
  )
}

function isMethod({ type, kind, method }: Node): boolean {
  return type === 'Property' && (method || kind !== 'init')
}

function* allInner(func: Func): Generator<Func> {
  for (const inner of func.inner) {
    yield inner
    yield* allInner(inner)
  }
}
