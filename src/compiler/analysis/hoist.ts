/** Declarations that take effect before a statement list runs. */
import type { Analysis } from './analysis.ts'
import type { Func } from './functions.ts'
import type { BindingKind, Scope } from './scope.ts'
import { boundNames, children, isErased, isFunction, type Node } from './syntax.ts'

/** Declares the functions, classes, `let` and `const` of a statement list, and each `var` inside it. */
export function hoist(body: Node[], scope: Scope, func: Func, bindingOf: Analysis['bindingOf']): void {
  for (const statement of body) declareStatement(statement, scope, func, bindingOf)
  if (scope.holdsVar) for (const statement of body) hoistVar(statement, scope, bindingOf)
}

function declareStatement(outer: Node, scope: Scope, func: Func, bindingOf: Analysis['bindingOf']): void {
  let statement = outer
  if (statement.type === 'ExportNamedDeclaration' || statement.type === 'ExportDefaultDeclaration') {
    if (statement.declaration === null) return
    statement = statement.declaration
  }
  while (statement.type === 'LabeledStatement') statement = statement.body
  if (isErased(statement)) return
  switch (statement.type) {
    case 'FunctionDeclaration':
      if (statement.id !== null) {
        scope.declare(statement.id.name, 'function', statement)
        if (!func.strict && !scope.holdsVar)
          scope.varScope().declare(statement.id.name, 'var', statement).volatile = true
      }
      break
    case 'ClassDeclaration':
      if (statement.id !== null) scope.declare(statement.id.name, 'class', statement)
      break
    case 'VariableDeclaration':
      if (statement.kind !== 'var') declarePatterns(statement, scope, bindingOf)
      break
    case 'ImportDeclaration':
      for (const specifier of statement.specifiers) {
        scope.declare(specifier.local.name, 'import', specifier).from = statement.source.value
      }
      break
    case 'TSEnumDeclaration':
    case 'TSModuleDeclaration':
      if (statement.id.type === 'Identifier') scope.declare(statement.id.name, 'other', statement)
      break
    default:
  }
}

/** Declares the names of a `var`, `let` or `const`. */
export function declarePatterns(declaration: Node, scope: Scope, bindingOf: Analysis['bindingOf']): void {
  const kind: BindingKind = /^(?:var|let|const)$/.test(declaration.kind) ? declaration.kind : 'other'
  for (const { id, init } of declaration.declarations) {
    for (const name of boundNames(id)) {
      const binding = scope.declare(name.name, kind, declaration)
      bindingOf.set(name, binding)
      if (id === name) binding.init = init
    }
  }
}

function hoistVar(node: Node, scope: Scope, bindingOf: Analysis['bindingOf']): void {
  if (isFunction(node) || node.type === 'StaticBlock' || node.type === 'TSModuleBlock') return
  if (node.type === 'ClassDeclaration' || node.type === 'ClassExpression') return
  if (node.type === 'VariableDeclaration' && node.kind === 'var') declarePatterns(node, scope, bindingOf)
  // Sloppy code: `if (x) function f() {}` writes a variable of the function around it.
  if (node.type === 'IfStatement') {
    for (const branch of [node.consequent, node.alternate]) {
      if (branch?.type !== 'FunctionDeclaration') continue
      scope.declare(branch.id.name, 'var', branch).volatile = true
    }
  }
  if (node.type.endsWith('Expression') || node.type.endsWith('Literal')) return
  for (const child of children(node)) hoistVar(child, scope, bindingOf)
}
