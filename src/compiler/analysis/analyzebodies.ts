/** Visits the bodies of functions and classes: each is a scope of its own. */
import type { Analyzer } from './analyze.ts'
import { Func, type FuncKind, kindOf } from './functions.ts'
import { hoist } from './hoist.ts'
import { Scope } from './scope.ts'
import { bare, boundNames, directives, isErased, isFunction, type Node, wordOf } from './syntax.ts'

export function visitFunction(walk: Analyzer, node: Node, scope: Scope, parent: Func, kind: FuncKind): Func {
  const func = new Func(node, parent, kind)
  walk.funcs.push(func)
  walk.funcOf.set(node, func)
  func.name = node.id?.name ?? ''
  if (node.id != null) walk.refuseYield(node.id, kind === 'declaration' ? parent : func)
  const body: Node[] = node.body.type === 'BlockStatement' ? node.body.body : []
  func.strict = parent.strict || directives(body).some(({ directive }) => directive === 'use strict')
  let outer = scope
  if (node.type === 'FunctionExpression' && node.id !== null) {
    outer = new Scope(scope, func, false)
    func.self = outer.declare(node.id.name, 'self', node)
  }
  const inner = new Scope(outer, func, true)
  walk.scopeOf.set(node, inner)
  for (const parameter of node.params) {
    for (const name of boundNames(parameter)) {
      walk.bindingOf.set(name, inner.declare(name.name, 'parameter', node))
    }
  }
  for (const parameter of node.params) walk.pattern(parameter, inner, func, false)
  if (node.body.type === 'BlockStatement') {
    hoist(body, inner, func, walk.bindingOf)
    walk.list(body, inner, func)
  } else walk.visit(node.body, inner, func)
  return func
}

export function visitClass(walk: Analyzer, node: Node, scope: Scope, func: Func): void {
  for (const decorator of node.decorators ?? []) walk.visit(decorator, scope, func)
  const inner = new Scope(scope, func, false)
  walk.scopeOf.set(node, inner)
  if (node.id !== null) inner.declare(node.id.name, 'class', node)
  if (node.superClass !== null) walk.visit(node.superClass, inner, func)
  const wasStrict = func.strict
  func.strict = true
  for (const element of node.body.body) visitElement(walk, element, node, inner, func)
  func.strict = wasStrict
}

function visitElement(walk: Analyzer, element: Node, owner: Node, scope: Scope, func: Func): void {
  if (isErased(element)) return
  for (const decorator of element.decorators ?? []) walk.visit(decorator, scope, func)
  if (element.computed) walk.visit(element.key, scope, func)
  if (element.type === 'MethodDefinition') {
    if (!isFunction(element.value)) return
    const made = visitFunction(walk, element.value, scope, func, kindOf(element))
    if (made.kind === 'constructor' && owner.superClass !== null) markDerived(made)
    made.holder = element
    made.owner = owner
    if (!element.computed) walk.ownMethods.add(wordOf(element.key))
    return
  }
  walk.misplacedField(element)
  const pseudo = new Func(element, func, 'initializer')
  pseudo.strict = true
  pseudo.owner = owner
  walk.funcs.push(pseudo)
  walk.funcOf.set(element, pseudo)
  const inner = new Scope(scope, pseudo, true)
  walk.scopeOf.set(element, inner)
  if (element.type === 'StaticBlock') {
    hoist(element.body, inner, pseudo, walk.bindingOf)
    walk.list(element.body, inner, pseudo)
  } else if (element.value) {
    walk.visit(element.value, inner, pseudo)
    const value = walk.funcOf.get(bare(element.value))
    if (value !== undefined && !element.computed) {
      if (value.name === '') value.name = wordOf(element.key)
      walk.ownMethods.add(wordOf(element.key))
    }
  }
}

function markDerived(func: Func): void {
  for (const inner of func.inner) {
    if (!inner.isArrow) continue
    inner.derived = true
    markDerived(inner)
  }
}
