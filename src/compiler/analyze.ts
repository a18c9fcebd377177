/** One walk over the tree: scopes, references, functions, loops and calls. */
import { isTaskDirective } from './directive.ts'
import { Func, type FuncKind } from './functions.ts'
import { type Binding, type BindingKind, Scope } from './scope.ts'
import { bare, boundNames, children, directives, isErased, isFunction, isLoop, type Node } from './syntax.ts'

export interface Analysis {
  program: Node
  isModule: boolean
  root: Func
  funcs: Func[]
  funcOf: Map<Node, Func>
  /** The binding of every identifier that refers to one; null for a global. */
  bindingOf: Map<Node, Binding | null>
  scopeOf: Map<Node, Scope>
  /** Property names that this file gives functions of its own. */
  ownMethods: Set<string>
  /** Identifiers that `+=` writes. */
  appends: Set<Node>
  /** `'use task'` where it is no directive. */
  misplaced: Node[]
}

interface Pending {
  node: Node
  scope: Scope
  func: Func
  callee: boolean
  write: boolean
}

export function analyze(program: Node, isModule: boolean): Analysis {
  return new Analyzer(program, isModule).run()
}

class Analyzer {
  readonly #program: Node
  readonly #isModule: boolean
  readonly #funcs: Func[] = []
  readonly #funcOf = new Map<Node, Func>()
  readonly #scopeOf = new Map<Node, Scope>()
  readonly #bindingOf = new Map<Node, Binding | null>()
  readonly #ownMethods = new Set<string>()
  readonly #misplaced: Node[] = []
  readonly #appends = new Set<Node>()
  readonly #decorated = new Set<Node>()
  readonly #pending: Pending[] = []
  readonly #evals: Scope[] = []

  constructor(program: Node, isModule: boolean) {
    this.#program = program
    this.#isModule = isModule
  }

  run(): Analysis {
    const root = new Func(this.#program, null, 'module')
    root.strict =
      this.#isModule || directives(this.#program.body).some(({ directive }) => directive === 'use strict')
    this.#funcs.push(root)
    this.#funcOf.set(this.#program, root)
    const scope = new Scope(null, root, true)
    this.#scopeOf.set(this.#program, scope)
    this.#hoist(this.#program.body, scope, root)
    for (const statement of this.#program.body) this.#visit(statement, scope, root)
    this.#resolve()
    return {
      program: this.#program,
      isModule: this.#isModule,
      root,
      funcs: this.#funcs,
      funcOf: this.#funcOf,
      bindingOf: this.#bindingOf,
      scopeOf: this.#scopeOf,
      ownMethods: this.#ownMethods,
      appends: this.#appends,
      misplaced: this.#misplaced,
    }
  }

  /** Declares what stands directly in a statement list: functions, classes, `let`, `const`; and `var` from below. */
  #hoist(body: Node[], scope: Scope, func: Func): void {
    for (const statement of body) this.#declareStatement(statement, scope, func)
    if (scope.holdsVar) for (const statement of body) this.#hoistVar(statement, scope)
  }

  #declareStatement(outer: Node, scope: Scope, func: Func): void {
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
        if (statement.kind !== 'var') this.#declarePatterns(statement, scope)
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

  #declarePatterns(declaration: Node, scope: Scope): void {
    const kind: BindingKind =
      declaration.kind === 'var'
        ? 'var'
        : declaration.kind === 'const'
          ? 'const'
          : declaration.kind === 'let'
            ? 'let'
            : 'other'
    for (const { id, init } of declaration.declarations) {
      for (const name of boundNames(id)) {
        const binding = scope.declare(name.name, kind, declaration)
        this.#bindingOf.set(name, binding)
        if (id === name) binding.init = init
      }
    }
  }

  #hoistVar(node: Node, scope: Scope): void {
    if (isFunction(node) || node.type === 'StaticBlock' || node.type === 'TSModuleBlock') return
    if (node.type === 'ClassDeclaration' || node.type === 'ClassExpression') return
    if (node.type === 'VariableDeclaration' && node.kind === 'var') this.#declarePatterns(node, scope)
    if (node.type.endsWith('Expression') || node.type.endsWith('Literal')) return
    for (const child of children(node)) this.#hoistVar(child, scope)
  }

  #refer(node: Node, scope: Scope, func: Func, write = false, callee = false): void {
    this.#pending.push({ node, scope, func, callee, write })
  }

  #resolve(): void {
    for (const { node, scope, func, callee, write } of this.#pending) {
      const binding = scope.find(node.name)
      this.#bindingOf.set(node, binding)
      binding?.references.push({ node, func, callee, write })
      if (binding !== null && this.#decorated.has(node)) binding.decorated = true
    }
    for (const start of this.#evals) {
      for (let scope: Scope | null = start; scope !== null; scope = scope.parent) {
        for (const binding of scope.bindings.values()) binding.volatile = true
      }
    }
    for (const func of this.#funcs) {
      const { node, binding } = func
      if (node.type === 'FunctionDeclaration' && node.id !== null) {
        const declared = this.#scopeOf.get(node)!.parent!.bindings.get(node.id.name) ?? null
        func.binding = declared
        if (declared !== null && declared.kind === 'function' && !declared.written && !declared.decorated) {
          declared.target = func
        }
      } else if (binding !== null && !binding.written && isVariable(binding)) binding.target = func
      if (func.self !== null && !func.self.written) func.self.target = func
      if (func.self?.written) {
        func.refuse('self-assigned', 'the function assigns to its own name, which means nothing', node)
      }
    }
  }

  #list(nodes: (Node | null)[], scope: Scope, func: Func): void {
    for (const node of nodes) if (node !== null) this.#visit(node, scope, func)
  }

  #block(body: Node[], scope: Scope, func: Func, owner: Node): void {
    const inner = new Scope(scope, func, false)
    this.#scopeOf.set(owner, inner)
    this.#hoist(body, inner, func)
    this.#list(body, inner, func)
  }

  #visit(node: Node, scope: Scope, func: Func): void {
    if (isErased(node)) return
    if (isLoop(node)) func.loops.push(node)
    switch (node.type) {
      case 'Identifier':
      case 'JSXIdentifier':
        this.#identifier(node, scope, func)
        return
      case 'ThisExpression':
        this.#lexical(func, 'This')
        return
      case 'Super':
        this.#lexical(func, 'Super')
        this.#lexical(func, 'This')
        return
      case 'MetaProperty':
        if (node.meta.name === 'new') this.#lexical(func, 'Target')
        return
      case 'FunctionDeclaration':
        this.#func(node, scope, func, 'declaration')
        return
      case 'FunctionExpression':
        this.#func(node, scope, func, 'expression')
        return
      case 'ArrowFunctionExpression':
        this.#func(node, scope, func, 'arrow')
        return
      case 'ClassDeclaration':
      case 'ClassExpression':
        this.#class(node, scope, func)
        return
      case 'BlockStatement':
        this.#block(node.body, scope, func, node)
        return
      case 'StaticBlock':
      case 'TSModuleBlock':
        this.#block(node.body, scope, func, node)
        return
      case 'SwitchStatement': {
        this.#visit(node.discriminant, scope, func)
        const inner = new Scope(scope, func, false)
        this.#scopeOf.set(node, inner)
        for (const branch of node.cases) this.#hoist(branch.consequent, inner, func)
        for (const branch of node.cases) {
          if (branch.test !== null) this.#visit(branch.test, inner, func)
          this.#list(branch.consequent, inner, func)
        }
        return
      }
      case 'ForStatement':
      case 'ForInStatement':
      case 'ForOfStatement':
        this.#forLoop(node, scope, func)
        return
      case 'CatchClause': {
        const inner = new Scope(scope, func, false)
        this.#scopeOf.set(node, inner)
        for (const name of boundNames(node.param)) inner.declare(name.name, 'catch', node)
        if (node.param !== null) this.#pattern(node.param, inner, func, false)
        this.#visit(node.body, inner, func)
        return
      }
      case 'WithStatement':
        func.refuse('with', '`with` makes names mean different things from call to call', node)
        this.#evals.push(scope)
        break
      case 'VariableDeclaration':
        if (node.kind === 'await using') {
          func.awaits.push(node)
          func.refuse('await-using', '`await using` has no resumable form', node)
        }
        for (const declarator of node.declarations) {
          this.#pattern(declarator.id, scope, func, false)
          if (declarator.init === null) continue
          this.#visit(declarator.init, scope, func)
          if (declarator.id.type === 'Identifier') this.#named(declarator.init, declarator.id, scope)
        }
        return
      case 'AssignmentExpression':
        if (node.operator === '+=') this.#appends.add(node.left)
        if (node.left.type === 'MemberExpression' && node.left.computed) this.#mayGetTwin(node.left.object)
        this.#pattern(node.left, scope, func, true)
        this.#visit(node.right, scope, func)
        if (node.left.type === 'MemberExpression' && !node.left.computed && isFunction(bare(node.right))) {
          this.#ownMethods.add(node.left.property.name)
        }
        return
      case 'UpdateExpression':
        this.#pattern(node.argument, scope, func, true)
        return
      case 'MemberExpression':
        this.#visit(node.object, scope, func)
        if (node.computed) this.#visit(node.property, scope, func)
        else if (
          node.property.name === 'callee' &&
          node.object.type === 'Identifier' &&
          node.object.name === 'arguments'
        ) {
          func.host.refuse('callee', '`arguments.callee` would be the resumable form', node)
          func.refuse('callee', '`arguments.callee` would be the resumable form', node)
        }
        return
      case 'JSXMemberExpression':
        this.#visit(node.object, scope, func)
        return
      case 'JSXAttribute':
        if (node.value !== null) this.#visit(node.value, scope, func)
        return
      case 'JSXNamespacedName':
        return
      case 'Property':
        if (node.computed) this.#visit(node.key, scope, func)
        if (isFunction(node.value)) {
          const kind: FuncKind =
            node.kind === 'get'
              ? 'getter'
              : node.kind === 'set'
                ? 'setter'
                : node.method
                  ? 'method'
                  : kindOf(node.value)
          const made = this.#func(node.value, scope, func, kind)
          made.holder = node
          if (!node.computed) this.#ownMethods.add(node.key.name ?? String(node.key.value))
        } else this.#visit(node.value, scope, func)
        return
      case 'LabeledStatement':
        this.#visit(node.body, scope, func)
        return
      case 'BreakStatement':
      case 'ContinueStatement':
        return
      case 'ExportSpecifier':
        if (node.exportKind !== 'type' && node.local.type === 'Identifier')
          this.#refer(node.local, scope, func)
        return
      case 'ExportNamedDeclaration':
        if (node.exportKind === 'type') return
        if (node.source !== null) return
        break
      case 'ImportDeclaration':
      case 'ExportAllDeclaration':
      case 'TSImportEqualsDeclaration':
        return
      case 'AwaitExpression':
        func.awaits.push(node)
        break
      case 'CallExpression':
        this.#call(node, scope, func)
        return
      case 'NewExpression':
        func.constructs.push(node)
        break
      case 'TaggedTemplateExpression':
        func.calls.push({ node, func, target: null, reach: 'unknown' })
        break
      case 'TSEnumMember':
        if (node.initializer) this.#visit(node.initializer, scope, func)
        return
      case 'TSModuleDeclaration':
        if (node.body) this.#visit(node.body, scope, func)
        return
      case 'ExpressionStatement':
        this.#misplacedDirective(node, func)
        break
      default:
    }
    for (const child of children(node)) this.#visit(child, scope, func)
  }

  #misplacedDirective(node: Node, func: Func): void {
    const literal = bare(node.expression)
    if (literal.type !== 'Literal' || !isTaskDirective(literal.value)) return
    const body: Node[] = func.kind === 'module' ? func.node.body : (func.node.body?.body ?? [])
    if (!directives(body).includes(node)) this.#misplaced.push(node)
  }

  #lexical(from: Func, what: 'This' | 'Arguments' | 'Target' | 'Super'): void {
    let func = from
    func[`uses${what}`] = true
    while (func.isArrow && func.parent !== null) {
      func = func.parent
      func[`uses${what}`] = true
      if (!func.isArrow) func[`lends${what}`] = true
    }
  }

  #identifier(node: Node, scope: Scope, func: Func): void {
    if (node.name === 'arguments' && func.host.kind !== 'module') this.#lexical(func, 'Arguments')
    if (node.name === 'yield') {
      for (let at: Func | null = func; at !== null; at = at.parent) {
        at.refuse('yield-name', '`yield` is a name here, and a keyword in the resumable form', node)
      }
    }
    this.#refer(node, scope, func)
  }

  #call(node: Node, scope: Scope, func: Func): void {
    const callee = bare(node.callee)
    func.calls.push({ node, func, target: null, reach: 'unknown' })
    if (callee.type === 'Identifier') {
      if (callee.name === 'eval') {
        func.refuse('eval', '`eval` can reach into the function by name', node)
        this.#evals.push(scope)
      }
      this.#refer(callee, scope, func, false, true)
    } else {
      this.#visit(node.callee, scope, func)
      if (
        callee.type === 'MemberExpression' &&
        /^(?:defineProperty|defineProperties|assign)$/.test(callee.property.name)
      ) {
        if (node.arguments.length > 0) this.#mayGetTwin(node.arguments[0])
      }
    }
    this.#list(node.arguments, scope, func)
  }

  /** The code puts a property on it under a name that it computes: perhaps a twin of its own making. */
  #mayGetTwin(object: Node): void {
    if (object.type === 'Identifier') this.#decorated.add(object)
  }

  /** A pattern's targets are writes, its defaults and computed keys are code. */
  #pattern(node: Node, scope: Scope, func: Func, write: boolean): void {
    switch (node.type) {
      case 'Identifier':
        if (write) {
          if (node.name === 'yield' || node.name === 'arguments') this.#identifier(node, scope, func)
          this.#refer(node, scope, func, true)
        } else if (!this.#bindingOf.has(node)) this.#bindingOf.set(node, scope.find(node.name))
        return
      case 'ObjectPattern':
        for (const property of node.properties) {
          if (property.type === 'RestElement') this.#pattern(property.argument, scope, func, write)
          else {
            if (property.computed) this.#visit(property.key, scope, func)
            this.#pattern(property.value, scope, func, write)
          }
        }
        return
      case 'ArrayPattern':
        for (const element of node.elements) if (element !== null) this.#pattern(element, scope, func, write)
        return
      case 'AssignmentPattern':
        this.#pattern(node.left, scope, func, write)
        this.#visit(node.right, scope, func)
        return
      case 'RestElement':
        this.#pattern(node.argument, scope, func, write)
        return
      case 'TSParameterProperty':
        this.#pattern(node.parameter, scope, func, write)
        return
      case 'ParenthesizedExpression':
      case 'TSAsExpression':
      case 'TSSatisfiesExpression':
      case 'TSNonNullExpression':
      case 'TSTypeAssertion':
        this.#pattern(node.expression, scope, func, write)
        return
      default:
        this.#visit(node, scope, func)
    }
  }

  #forLoop(node: Node, scope: Scope, func: Func): void {
    const inner = new Scope(scope, func, false)
    this.#scopeOf.set(node, inner)
    const head = node.type === 'ForStatement' ? node.init : node.left
    if (head?.type === 'VariableDeclaration') {
      if (head.kind !== 'var') this.#declarePatterns(head, inner)
      if (node.type !== 'ForStatement') {
        for (const name of boundNames(head.declarations[0].id)) {
          const binding = inner.find(name.name)
          if (binding === null) continue
          if (head.kind !== 'const') binding.volatile = true
          else if (node.type === 'ForOfStatement' && head.declarations[0].id === name)
            binding.iterates = node.right
        }
      }
      this.#visit(head, inner, func)
    } else if (head !== null && head !== undefined) {
      if (node.type === 'ForStatement') this.#visit(head, inner, func)
      else this.#pattern(head, inner, func, true)
    }
    if (node.type === 'ForStatement') {
      if (node.test !== null) this.#visit(node.test, inner, func)
      if (node.update !== null) this.#visit(node.update, inner, func)
    } else this.#visit(node.right, inner, func)
    if (node.await === true) func.awaits.push(node)
    this.#visit(node.body, inner, func)
  }

  #named(value: Node, id: Node, scope: Scope): void {
    const made = this.#funcOf.get(bare(value))
    if (made === undefined) return
    if (made.name === '') made.name = id.name
    made.binding = scope.find(id.name)
  }

  #func(node: Node, scope: Scope, parent: Func, kind: FuncKind): Func {
    const func = new Func(node, parent, kind)
    this.#funcs.push(func)
    this.#funcOf.set(node, func)
    func.name = node.id?.name ?? ''
    const body: Node[] = node.body.type === 'BlockStatement' ? node.body.body : []
    func.strict = parent.strict || directives(body).some(({ directive }) => directive === 'use strict')
    let outer = scope
    if (node.type === 'FunctionExpression' && node.id !== null) {
      outer = new Scope(scope, func, false)
      func.self = outer.declare(node.id.name, 'self', node)
    }
    const inner = new Scope(outer, func, true)
    this.#scopeOf.set(node, inner)
    for (const parameter of node.params) {
      for (const name of boundNames(parameter)) {
        this.#bindingOf.set(name, inner.declare(name.name, 'parameter', node))
      }
    }
    for (const parameter of node.params) this.#pattern(parameter, inner, func, false)
    if (node.body.type === 'BlockStatement') {
      this.#hoist(body, inner, func)
      this.#list(body, inner, func)
    } else this.#visit(node.body, inner, func)
    return func
  }

  #class(node: Node, scope: Scope, func: Func): void {
    for (const decorator of node.decorators ?? []) this.#visit(decorator, scope, func)
    const inner = new Scope(scope, func, false)
    this.#scopeOf.set(node, inner)
    if (node.id !== null) inner.declare(node.id.name, 'class', node)
    if (node.superClass !== null) this.#visit(node.superClass, inner, func)
    const wasStrict = func.strict
    func.strict = true
    for (const element of node.body.body) this.#element(element, node, inner, func)
    func.strict = wasStrict
  }

  #element(element: Node, owner: Node, scope: Scope, func: Func): void {
    if (isErased(element)) return
    for (const decorator of element.decorators ?? []) this.#visit(decorator, scope, func)
    if (element.computed) this.#visit(element.key, scope, func)
    if (element.type === 'MethodDefinition') {
      if (!isFunction(element.value)) return
      const kind: FuncKind =
        element.kind === 'constructor'
          ? 'constructor'
          : element.kind === 'get'
            ? 'getter'
            : element.kind === 'set'
              ? 'setter'
              : 'method'
      const made = this.#func(element.value, scope, func, kind)
      if (kind === 'constructor' && owner.superClass !== null) markDerived(made)
      made.holder = element
      made.owner = owner
      if (!element.computed) this.#ownMethods.add(element.key.name ?? String(element.key.value))
      return
    }
    const pseudo = new Func(element, func, 'initializer')
    pseudo.strict = true
    pseudo.owner = owner
    this.#funcs.push(pseudo)
    this.#funcOf.set(element, pseudo)
    const inner = new Scope(scope, pseudo, true)
    this.#scopeOf.set(element, inner)
    if (element.type === 'StaticBlock') {
      this.#hoist(element.body, inner, pseudo)
      this.#list(element.body, inner, pseudo)
    } else if (element.value) {
      this.#visit(element.value, inner, pseudo)
      const value = this.#funcOf.get(bare(element.value))
      if (value !== undefined && !element.computed) {
        if (value.name === '') value.name = element.key.name ?? String(element.key.value)
        this.#ownMethods.add(element.key.name ?? String(element.key.value))
      }
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

function kindOf(node: Node): FuncKind {
  return node.type === 'ArrowFunctionExpression' ? 'arrow' : 'expression'
}

/** A variable that is given its value where it is declared. A `var` may be called before that: then it is undefined. */
function isVariable({ kind, decorated }: Binding): boolean {
  return kind === 'const' || kind === 'let' || (kind === 'var' && !decorated)
}
