/** One walk over the tree: scopes, references, functions, loops and calls. */
import type { Analysis } from './analysis.ts'
import { visitClass, visitFunction } from './analyzebodies.ts'
import { isTaskDirective } from './directive.ts'
import { Func, kindOf } from './functions.ts'
import { handsOutExports } from '../loading/commonjs.ts'
import { declarePatterns, hoist } from './hoist.ts'
import { resolve, type Use } from './resolve.ts'
import { Scope } from './scope.ts'
import {
  bare,
  boundNames,
  children,
  directives,
  isErased,
  isFunction,
  isLoop,
  keyName,
  type Node,
  wordOf,
} from './syntax.ts'

export function analyze(program: Node, isModule: boolean): Analysis {
  return new Analyzer(program, isModule).run()
}

/** The walk. It visits each node with the scope and the function around it. */
export class Analyzer {
  readonly #program: Node
  readonly #isModule: boolean
  readonly funcs: Func[] = []
  readonly funcOf: Analysis['funcOf'] = new Map()
  readonly scopeOf: Analysis['scopeOf'] = new Map()
  readonly bindingOf: Analysis['bindingOf'] = new Map()
  readonly ownMethods: Analysis['ownMethods'] = new Set()
  readonly #texts: Node[] = []
  readonly #misplaced: Node[] = []
  readonly #appends = new Set<Node>()
  readonly #decorated = new Set<Node>()
  readonly #uses: Use[] = []
  readonly #evals: Scope[] = []

  constructor(program: Node, isModule: boolean) {
    this.#program = program
    this.#isModule = isModule
  }

  run(): Analysis {
    const root = new Func(this.#program, null, 'module')
    root.strict =
      this.#isModule || directives(this.#program.body).some(({ directive }) => directive === 'use strict')
    this.funcs.push(root)
    this.funcOf.set(this.#program, root)
    const scope = new Scope(null, root, true)
    this.scopeOf.set(this.#program, scope)
    hoist(this.#program.body, scope, root, this.bindingOf)
    for (const statement of this.#program.body) this.visit(statement, scope, root)
    resolve({
      uses: this.#uses,
      decorated: this.#decorated,
      evals: this.#evals,
      funcs: this.funcs,
      bindingOf: this.bindingOf,
      scopeOf: this.scopeOf,
    })
    return {
      program: this.#program,
      isMovable: false,
      isModule: this.#isModule,
      root,
      funcs: this.funcs,
      funcOf: this.funcOf,
      bindingOf: this.bindingOf,
      scopeOf: this.scopeOf,
      scopesIn: scopesIn(this.scopeOf),
      ownMethods: this.ownMethods,
      appends: this.#appends,
      misplaced: this.#misplaced,
      texts: this.#texts,
    }
  }

  #refer(node: Node, scope: Scope, func: Func, write = false, callee = false): void {
    this.#uses.push({ node, scope, func, callee, write })
  }

  list(nodes: (Node | null)[], scope: Scope, func: Func): void {
    for (const node of nodes) if (node !== null) this.visit(node, scope, func)
  }

  #block(body: Node[], scope: Scope, func: Func, owner: Node): void {
    const inner = new Scope(scope, func, false)
    this.scopeOf.set(owner, inner)
    hoist(body, inner, func, this.bindingOf)
    this.list(body, inner, func)
  }

  visit(node: Node, scope: Scope, func: Func): void {
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
        visitFunction(this, node, scope, func, 'declaration')
        return
      case 'FunctionExpression':
        visitFunction(this, node, scope, func, 'expression')
        return
      case 'ArrowFunctionExpression':
        visitFunction(this, node, scope, func, 'arrow')
        return
      case 'ClassDeclaration':
      case 'ClassExpression':
        visitClass(this, node, scope, func)
        return
      case 'BlockStatement':
      case 'StaticBlock':
      case 'TSModuleBlock':
        this.#block(node.body, scope, func, node)
        return
      case 'SwitchStatement': {
        this.visit(node.discriminant, scope, func)
        const inner = new Scope(scope, func, false)
        this.scopeOf.set(node, inner)
        for (const branch of node.cases) hoist(branch.consequent, inner, func, this.bindingOf)
        for (const branch of node.cases) {
          if (branch.test !== null) this.visit(branch.test, inner, func)
          this.list(branch.consequent, inner, func)
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
        this.scopeOf.set(node, inner)
        for (const name of boundNames(node.param)) inner.declare(name.name, 'catch', node)
        if (node.param !== null) this.pattern(node.param, inner, func, false)
        this.visit(node.body, inner, func)
        return
      }
      case 'WithStatement':
        func.refuse('with', '`with` makes names mean different things from call to call', node)
        this.#evals.push(scope)
        break
      case 'VariableDeclaration':
        if (node.kind === 'await using') {
          func.refuse('await-using', '`await using` has no resumable form', node)
        }
        for (const declarator of node.declarations) {
          this.pattern(declarator.id, scope, func, false)
          if (declarator.init === null) continue
          this.visit(declarator.init, scope, func)
          if (declarator.id.type === 'Identifier') this.#named(declarator.init, declarator.id, scope)
        }
        return
      case 'AssignmentExpression':
        if (node.operator === '+=') {
          this.#appends.add(node.left)
          this.#mayBeText(node.right)
        }
        if (node.left.type === 'MemberExpression' && node.left.computed) this.#mayGetTwin(node.left.object)
        this.pattern(node.left, scope, func, true)
        this.visit(node.right, scope, func)
        if (node.left.type === 'MemberExpression' && !node.left.computed && isFunction(bare(node.right))) {
          this.ownMethods.add(node.left.property.name)
        }
        return
      case 'UpdateExpression':
        this.pattern(node.argument, scope, func, true)
        return
      case 'MemberExpression':
        this.visit(node.object, scope, func)
        if (node.property.name === 'toString') this.#mayBeText(node.object)
        if (node.computed) this.visit(node.property, scope, func)
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
        this.visit(node.object, scope, func)
        return
      case 'JSXAttribute':
        if (node.value !== null) this.visit(node.value, scope, func)
        return
      case 'JSXNamespacedName':
        return
      case 'Property':
        if (node.computed) this.visit(node.key, scope, func)
        if (isFunction(node.value)) {
          const made = visitFunction(this, node.value, scope, func, kindOf(node))
          made.holder = node
          if (!node.computed) this.ownMethods.add(wordOf(node.key))
        } else this.visit(node.value, scope, func)
        return
      case 'ObjectExpression':
        for (const child of children(node)) this.visit(child, scope, func)
        this.#refuseUnnamed(node)
        return
      case 'LabeledStatement':
        this.refuseYield(node.label, func)
        this.visit(node.body, scope, func)
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
      case 'CallExpression':
        if (node.callee.name === 'String' && node.arguments.length > 0) this.#mayBeText(node.arguments[0])
        this.#call(node, scope, func)
        return
      case 'TemplateLiteral':
        for (const expression of node.expressions) this.#mayBeText(expression)
        break
      case 'BinaryExpression':
        if (node.operator !== '+') break
        this.#mayBeText(node.left)
        this.#mayBeText(node.right)
        break
      case 'NewExpression':
        func.constructs.push(node)
        break
      case 'TaggedTemplateExpression':
        func.calls.push({ node, func, target: null, reach: 'unknown', plain: false, cost: 0 })
        break
      case 'TSEnumMember':
        if (node.initializer) this.visit(node.initializer, scope, func)
        return
      case 'TSModuleDeclaration':
        if (node.body) this.visit(node.body, scope, func)
        return
      case 'ExpressionStatement':
        this.#misplacedDirective(node, func)
        break
      default:
    }
    for (const child of children(node)) this.visit(child, scope, func)
  }

  #mayBeText(node: Node): void {
    const value = bare(node)
    if (value.type === 'Identifier' || isFunction(value)) this.#texts.push(value)
  }

  /**
   * A function under a computed name is made in a separate object, which is spread into the literal. So its
   * `super` would be another object, and V8 moves accessors that follow a spread to the end.
   */
  #refuseUnnamed({ properties }: Node): void {
    const hasAccessor = properties.some(({ kind }: Node) => kind === 'get' || kind === 'set')
    for (const property of properties as Node[]) {
      const made = property.type === 'Property' ? this.funcOf.get(bare(property.value)) : undefined
      if (made === undefined || keyName(property) !== null) continue
      if (made.kind === 'method' ? hasAccessor || made.usesSuper : hasAccessor && made.node.id === null) {
        made.refuse('computed-key', 'the name of the function is only known at run time', property)
      }
    }
  }

  /** The twin of an arrow can only read `super`. */
  #refuseSuper(target: Node, func: Func): void {
    if (!func.isArrow || target.type !== 'MemberExpression' || target.object.type !== 'Super') return
    func.refuse('super', 'an arrow that assigns to `super` has no resumable form', target)
  }

  #misplacedDirective(node: Node, func: Func): void {
    const literal = bare(node.expression)
    const isTemplate = literal.type === 'TemplateLiteral' && literal.expressions.length === 0
    if (!isTemplate && literal.type !== 'Literal') return
    if (!isTaskDirective(isTemplate ? literal.quasis[0].value.cooked : literal.value)) return
    const body: Node[] = func.kind === 'module' ? func.node.body : (func.node.body?.body ?? [])
    if (!directives(body).includes(node)) this.#misplaced.push(node)
  }

  /** In a class body, the directive is the name of a field. */
  misplacedField({ key, computed, value }: Node): void {
    if (key?.type === 'Literal' && !computed && value == null && isTaskDirective(key.value))
      this.#misplaced.push(key)
  }

  #lexical(from: Func, what: 'This' | 'Arguments' | 'Target' | 'Super'): void {
    let func = from
    func[`uses${what}`] = true
    while (func.isArrow && func.parent !== null) {
      func = func.parent
      func[`uses${what}`] = true
      if (!func.isArrow) func[`captures${what}`] = true
    }
  }

  #identifier(node: Node, scope: Scope, func: Func): void {
    if (node.name === 'arguments' && (func.host.kind !== 'module' || !this.#isModule))
      this.#lexical(func, 'Arguments')
    this.refuseYield(node, func)
    this.#refer(node, scope, func)
  }

  /** `yield` as a name, in sloppy code. */
  refuseYield(name: Node, func: Func): void {
    if (name.name !== 'yield') return
    for (let at: Func | null = func; at !== null; at = at.parent) {
      at.refuse('yield-name', '`yield` is a name here, and a keyword in the resumable form', name)
    }
  }

  #call(node: Node, scope: Scope, func: Func): void {
    const callee = bare(node.callee)
    func.calls.push({ node, func, target: null, reach: 'unknown', plain: false, cost: 0 })
    if (callee.type === 'Identifier') {
      if (callee.name === 'eval') {
        func.refuse('eval', '`eval` can use every variable of the function', node)
        this.#evals.push(scope)
      }
      this.#refer(callee, scope, func, false, true)
    } else {
      this.visit(node.callee, scope, func)
      if (
        callee.type === 'MemberExpression' &&
        /^(?:defineProperty|defineProperties|assign)$/.test(callee.property.name)
      ) {
        if (node.arguments.length > 0) this.#mayGetTwin(node.arguments[0])
      }
    }
    this.list(node.arguments, scope, func)
    if (this.#isModule) return
    for (const made of handsOutExports(node)) {
      const known = this.funcOf.get(made)
      if (known !== undefined) known.exporting = true
    }
  }

  /** The code sets a property under a computed name, perhaps a twin of its own. */
  #mayGetTwin(object: Node): void {
    if (object.type === 'Identifier') this.#decorated.add(object)
  }

  /** Visits a pattern: its targets are writes, its defaults and computed keys are code. */
  pattern(node: Node, scope: Scope, func: Func, write: boolean): void {
    switch (node.type) {
      case 'Identifier':
        this.refuseYield(node, func)
        if (write) {
          if (node.name === 'yield' || node.name === 'arguments') this.#identifier(node, scope, func)
          this.#refer(node, scope, func, true)
        } else if (!this.bindingOf.has(node)) this.bindingOf.set(node, scope.find(node.name))
        return
      case 'ObjectPattern':
        for (const property of node.properties) {
          if (property.type === 'RestElement') this.pattern(property.argument, scope, func, write)
          else {
            if (property.computed) this.visit(property.key, scope, func)
            this.pattern(property.value, scope, func, write)
          }
        }
        return
      case 'ArrayPattern':
        for (const element of node.elements) if (element !== null) this.pattern(element, scope, func, write)
        return
      case 'AssignmentPattern':
        this.pattern(node.left, scope, func, write)
        this.visit(node.right, scope, func)
        return
      case 'RestElement':
        this.pattern(node.argument, scope, func, write)
        return
      case 'TSParameterProperty':
        this.pattern(node.parameter, scope, func, write)
        return
      case 'ParenthesizedExpression':
      case 'TSAsExpression':
      case 'TSSatisfiesExpression':
      case 'TSNonNullExpression':
      case 'TSTypeAssertion':
        this.pattern(node.expression, scope, func, write)
        return
      default:
        if (write) this.#refuseSuper(node, func)
        this.visit(node, scope, func)
    }
  }

  #forLoop(node: Node, scope: Scope, func: Func): void {
    const inner = new Scope(scope, func, false)
    this.scopeOf.set(node, inner)
    const head = node.type === 'ForStatement' ? node.init : node.left
    if (head?.type === 'VariableDeclaration') {
      if (head.kind !== 'var') declarePatterns(head, inner, this.bindingOf)
      if (node.type !== 'ForStatement') {
        for (const name of boundNames(head.declarations[0].id)) {
          const binding = inner.find(name.name)
          if (binding === null) continue
          if (head.kind !== 'const') binding.volatile = true
          else if (node.type === 'ForOfStatement' && head.declarations[0].id === name)
            binding.iterates = node.right
        }
      }
      this.visit(head, inner, func)
    } else if (head !== null && head !== undefined) {
      if (node.type === 'ForStatement') this.visit(head, inner, func)
      else this.pattern(head, inner, func, true)
    }
    if (node.type === 'ForStatement') {
      if (node.test !== null) this.visit(node.test, inner, func)
      if (node.update !== null) this.visit(node.update, inner, func)
    } else this.visit(node.right, inner, func)
    this.visit(node.body, inner, func)
  }

  #named(value: Node, id: Node, scope: Scope): void {
    const made = this.funcOf.get(bare(value))
    if (made === undefined) return
    if (made.name === '') made.name = id.name
    made.binding = scope.find(id.name)
  }
}

function scopesIn(scopeOf: Analysis['scopeOf']): Analysis['scopesIn'] {
  const found: Analysis['scopesIn'] = new Map()
  for (const entry of scopeOf) {
    const { func } = entry[1]
    const list = found.get(func)
    if (list === undefined) found.set(func, [entry])
    else list.push(entry)
  }
  return found
}
