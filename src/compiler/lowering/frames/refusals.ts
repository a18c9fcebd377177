/** What cannot be entered again in the middle, or not without a cost that a generator has not. */
import type { Analysis } from '../../analysis.ts'
import type { Func } from '../../functions.ts'
import { bare, boundNames, children, isClass, isFunction, type Node, walk } from '../../syntax.ts'

/** Why the function is better made a generator; null when nothing in it speaks against its unwinding. */
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
    if (defaultsAreApart(one, analysis, one === func)) {
      refuse('a parameter is set by what the body does not see')
    }
  }
  if (!func.strict && func.usesArguments) {
    const scope = analysis.scopeOf.get(func.node)!
    for (const binding of scope.bindings.values()) {
      if (binding.kind === 'parameter' && binding.written) refuse('`arguments` follows its parameters')
    }
  }
  const visit = (node: Node, top: boolean): void => {
    if (isFunction(node)) {
      if (node.type === 'FunctionDeclaration' && !top && !func.strict) {
        refuse('a function in a block of sloppy code')
      }
      return
    }
    switch (node.type) {
      case 'VariableDeclaration':
        if (node.kind.includes('using')) refuse('`using` disposes of what it declares')
        for (const { id } of node.declarations) if (stops(id)) refuse('a pattern can stop')
        break
      case 'AssignmentExpression': {
        const left = bare(node.left)
        if ((left.type === 'ObjectPattern' || left.type === 'ArrayPattern') && stops(left)) {
          refuse('a pattern can stop')
        }
        if (isArguments(left)) refuse('`arguments` is written')
        break
      }
      case 'UpdateExpression':
        if (isArguments(bare(node.argument))) refuse('`arguments` is written')
        break
      case 'ForInStatement':
      case 'ForOfStatement':
        if (stops(node.left)) refuse('a pattern can stop')
        break
      case 'ForStatement':
        if (headIsCaptured(node, analysis)) refuse('a closure in the head of a loop')
        break
      case 'CatchClause':
        if (stops(node.param)) refuse('a pattern can stop')
        break
      case 'SwitchStatement':
        for (const { test } of node.cases) if (stops(test)) refuse('a case can stop')
        break
      case 'LabeledStatement':
        if (node.body.type === 'FunctionDeclaration') refuse('a function with a label')
        break
      case 'TSEnumDeclaration':
      case 'TSModuleDeclaration':
        refuse('it declares an enum or a namespace')
        break
      case 'ObjectExpression':
        if (stops(node) && node.properties.some(isMethod)) refuse('a method stands beside what can stop')
        break
      case 'TaggedTemplateExpression':
        if (bare(node.tag).type === 'MemberExpression' && stops(node)) refuse('a tag is a method')
        break
      case 'JSXElement':
      case 'JSXFragment':
        if (stops(node)) refuse('JSX can stop')
        break
      case 'UnaryExpression':
        if (node.operator === 'delete' && bare(node.argument).type === 'ChainExpression' && stops(node)) {
          refuse('`delete` of a chain can stop')
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
 * Defaults have a scope of their own: it matters when they name what comes after them and, in the function that
 * unwinds itself, when they make closures.
 */
function defaultsAreApart(func: Func, { bindingOf, scopeOf }: Analysis, isItself: boolean): boolean {
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
      if (at === undefined || at.start >= node.start) apart = true
      return !apart
    })
  }
  return apart
}

/** True when a closure in the head of a `for` sees its variables: those of the first turn are others than the next's. */
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
