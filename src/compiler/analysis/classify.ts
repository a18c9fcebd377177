/**
 * Decides which functions are tasks, which can run long, and which get a resumable form. It is independent of
 * the lowering.
 */
import { accessorRefusal, addAccessors, isFoundByKey } from './accessors.ts'
import { type Analysis, globalName } from './analysis.ts'
import { ImportedCosts, type ModuleCostsLookup } from './importedcosts.ts'
import { lightMethods, shortGlobals, shortNamespaces } from './builtins.ts'
import { constructorsIn, type ImplicitCall } from './construct.ts'
import { connectedGroups } from './cycles.ts'
import { markIn, movableIn } from './directive.ts'
import type { Call, Func } from './functions.ts'
import { type Costs, findLong } from './cost.ts'
import { refuseFunctionTexts } from './functiontext.ts'
import { isBuiltIn, typeOf } from './types.ts'
import { bare, isFunction, isWellKnownSymbol, keyName, type Node } from './syntax.ts'

interface ClassifyOptions {
  /** Every function gets a resumable form, marked or not, brief or not. */
  everything: boolean
  /** Every function is marked, as if the module began with 'use task'. */
  whole?: boolean
  /** Every marked function can move, unless its own directive names a lowering. */
  movable?: boolean
  /** The costs of the imported modules, in a package that is compiled whole. */
  neighbour?: ModuleCostsLookup | undefined
}

/** Fills in marks, call targets, `recursive`, `long`, `twin` and `why`. */
export function classify(
  analysis: Analysis,
  { everything, whole = false, movable = false, neighbour }: ClassifyOptions,
): Costs {
  for (const func of analysis.funcs) {
    name(func)
    refuseUnsupported(func, everything, analysis)
  }
  refuseFunctionTexts(analysis, isMarkedItself)
  mark(analysis, everything || whole, movable && !everything)
  for (const func of analysis.funcs) for (const call of func.calls) aim(call, analysis)
  const made = everything ? new Map<Func, ImplicitCall[]>() : constructorsIn(analysis)
  if (!everything) addAccessors(analysis, made)
  findRecursion(analysis.funcs, made)
  const beyond = neighbour === undefined || !whole ? null : new ImportedCosts(analysis, neighbour)
  const costs = findLong(analysis, whole && !everything, made, beyond)
  choose(analysis, everything)
  return costs
}

function name(func: Func): void {
  const { holder, node } = func
  if (holder !== null && func.name === '') func.name = keyName(holder) ?? '[computed]'
  if (func.kind === 'constructor') func.name = 'constructor'
  if (func.kind === 'initializer') {
    func.name =
      node.type === 'StaticBlock' ? 'static block' : `initializer of ${keyName(node) ?? '[computed]'}`
  }
  if (func.name === '') func.name = func.kind === 'module' ? 'module' : '(anonymous)'
}

/**
 * Refuses kinds of functions that have no resumable form. Accessors have one in checker mode, where every
 * access that may call one is rewritten.
 */
function refuseUnsupported(func: Func, everything: boolean, { bindingOf }: Analysis): void {
  const { node, holder, owner } = func
  const written =
    everything && holder !== null && keyName(holder) !== null && holder.key.type !== 'PrivateIdentifier'
  switch (written && func.kind !== 'constructor' ? '' : func.kind) {
    case 'getter':
    case 'setter': {
      const why = everything
        ? 'its name does not identify it'
        : accessorRefusal(func, isMarkedItself(func), bindingOf)
      if (why !== null) func.refuse(func.kind, why, holder ?? node)
      break
    }
    case 'constructor':
      refuseConstructor(func, everything)
      break
    case 'initializer':
      func.refuse(
        'initializer',
        'a class initializer runs inside `new` or the class definition, which cannot be resumed',
        node,
      )
      break
    default:
  }
  if (func.isAsync && func.isGenerator) {
    func.refuse('async-generator', 'an async generator has no resumable form', node)
  }
  if (holder?.type === 'MethodDefinition') {
    const decorated = [holder, ...node.params].some(({ decorators }) => (decorators?.length ?? 0) > 0)
    if (decorated) {
      func.refuse('decorator', 'a decorator may replace the method', holder)
    }
    const isAccessor = func.kind === 'getter' || func.kind === 'setter'
    const isKnown =
      func.kind === 'constructor' ||
      keyName(holder) !== null ||
      isWellKnownSymbol(holder.key) ||
      (isAccessor && isFoundByKey(holder, bindingOf))
    if (!isKnown) {
      func.refuse('computed-key', 'the name of the method is only known at run time', holder)
    }
    if (owner !== null && keyName(holder) !== null && isShadowed(holder, owner)) {
      func.refuse('shadowed', 'a later element of the class has the same name', holder)
    }
  }
  if (func.isArrow && func.usesArguments && func.declaresArguments) {
    func.refuse(
      'arguments',
      '`arguments` is a variable here, and would mean something else in the resumable form',
      node,
    )
  }
  if (func.isArrow && func.derived && (func.usesThis || func.usesSuper || func.usesTarget)) {
    func.refuse('derived-this', 'inside a derived constructor `this` may not exist yet', node)
  }
}

function isMarkedItself({ node }: Func): boolean {
  return node.body?.type === 'BlockStatement' && markIn(node.body.body) !== undefined
}

/** A constructor unwinds or stays plain, because `new` cannot call a generator. */
function refuseConstructor(func: Func, everything: boolean): void {
  const { node, holder, owner } = func
  const place = holder ?? node
  if (everything) func.refuse('constructor', 'a constructor is called by `new`, which is not checked', place)
  const isDecorated = ({ decorators }: Node): boolean => (decorators?.length ?? 0) > 0
  if (owner !== null && (isDecorated(owner) || owner.body.body.some(isDecorated))) {
    func.refuse('decorator', 'a decorator may run code between `new` and the constructor', place)
  }
  if (node.params.some(({ type }: Node) => type === 'TSParameterProperty')) {
    func.refuse('parameter-property', 'a parameter that declares a property is set by other code', place)
  }
}

function isShadowed(holder: Node, owner: Node): boolean {
  const elements: Node[] = owner.body.body
  const own = keyName(holder)
  const after = elements.slice(elements.indexOf(holder) + 1)
  return after.some(
    other =>
      other.type === 'MethodDefinition' &&
      isFunction(other.value) &&
      other.static === holder.static &&
      other.kind === holder.kind &&
      keyName(other) === own,
  )
}

function mark(analysis: Analysis, all: boolean, movable: boolean): void {
  const { program, funcs } = analysis
  const module = markIn(program.body)
  const moduleMoves = movableIn(program.body) === true || (movable && (module ?? null) === null)
  const whole = all || module !== undefined
  for (const func of funcs) {
    if (func.kind === 'module') continue
    const { body } = func.node
    const own = func.kind !== 'initializer' && body?.type === 'BlockStatement' ? markIn(body.body) : undefined
    func.asked = own ?? func.parent?.asked ?? module ?? null
    if (own === undefined) {
      func.movable = func.parent === null || func.parent.kind === 'module' ? moduleMoves : func.parent.movable
    } else func.movable = movableIn(body.body) === true || (own === null && movable)
    if (func.movable) func.asked = 'frames'
    if (own !== undefined) func.mark = 'function'
    else if (whole) func.mark = 'module'
    else if (func.parent?.mark === 'function' || func.parent?.mark === 'inherited') func.mark = 'inherited'
  }
  analysis.isMovable = moduleMoves || funcs.some(func => func.movable)
}

/** Finds the target of a call, if the source shows it. */
function aim(call: Call, analysis: Analysis): void {
  const { bindingOf, funcOf, ownMethods } = analysis
  const { node } = call
  if (node.type === 'TaggedTemplateExpression') {
    const tag = bare(node.tag)
    const binding = tag.type === 'Identifier' ? (bindingOf.get(tag) ?? null) : null
    if (binding !== null && binding.target !== null) known(call, binding.target)
    else if (tag.type === 'MemberExpression' && globalName(tag.object, bindingOf) === 'String')
      call.reach = 'short'
    return
  }
  const callee = bare(node.callee)
  switch (callee.type) {
    case 'Identifier': {
      const binding = bindingOf.get(callee) ?? null
      if (binding === null) {
        if (shortGlobals.has(callee.name)) call.reach = 'short'
      } else if (binding.target !== null) known(call, binding.target)
      return
    }
    case 'FunctionExpression':
    case 'ArrowFunctionExpression':
      known(call, funcOf.get(callee)!)
      return
    case 'Super':
    case 'Import':
      call.reach = 'short'
      return
    case 'MemberExpression': {
      const { object, property } = callee
      if (callee.computed || property.type !== 'Identifier') return
      const except = shortNamespaces.get(globalName(object, bindingOf) ?? '')
      if (except !== undefined && !except.has(property.name)) {
        call.reach = 'short'
        return
      }
      const type = typeOf(object, analysis)
      if (type !== null && isBuiltIn(type, property.name)) {
        call.reach = 'short'
        return
      }
      if (lightMethods.has(property.name) && !ownMethods.has(property.name)) call.reach = 'light'
      return
    }
    default:
  }
}

function known(call: Call, target: Func): void {
  call.target = target
  call.reach = 'known'
}

/** A function is recursive if a chain of known calls leads from it to itself. */
function findRecursion(funcs: Func[], made: ReadonlyMap<Func, readonly ImplicitCall[]>): void {
  const next = (func: Func): Func[] => [
    ...func.calls.flatMap(({ target }) => (target === null ? [] : [target])),
    ...(made.get(func) ?? []).map(({ target }) => target),
  ]
  for (const group of connectedGroups(funcs, next)) {
    if (group.length === 1 && !next(group[0]!).includes(group[0]!)) continue
    for (const member of group) member.recursive = true
  }
}

function isOutermost({ kind, parent }: Func): boolean {
  return parent?.kind === 'module' && kind !== 'method' && kind !== 'constructor'
}

/** True if functions inside share variables that change: only a function that unwinds has boxes for these. */
function sharesVariables(func: Func, scopesIn: Analysis['scopesIn']): boolean {
  if (func.inner.length === 0 || func.kind === 'initializer') return false
  return (scopesIn.get(func) ?? []).some(([, { bindings }]) =>
    [...bindings.values()].some(({ captured, written, kind }) => captured && (written || kind === 'var')),
  )
}

function choose({ program, funcs, scopesIn }: Analysis, everything: boolean): void {
  // If the module itself has the directive, its outermost functions get a resumable form even if they are
  // brief.
  const isAsked = markIn(program.body) !== undefined
  for (const func of funcs) {
    if (func.kind === 'module') continue
    const refusal = func.refusals[0]
    if (func.mark === null) func.why = 'not marked'
    else if (refusal !== undefined) func.why = refusal.why
    else if (func.exporting && !everything && func.mark !== 'function') {
      func.why = 'Node recognizes its text as an export of a CommonJS module'
    } else if (everything || func.mark === 'function') {
      func.twin = true
      func.why = everything ? 'checked' : "marked with 'use task'"
    } else if (func.movable && sharesVariables(func, scopesIn)) {
      func.twin = true
      func.why = 'closures that can move share its variables'
    } else if (func.long || (isAsked && isOutermost(func))) {
      func.twin = true
      func.why =
        func.mark === 'module'
          ? "the module is marked with 'use task'"
          : 'made inside a task, and can run long'
    } else func.why = 'cannot run long: no loop, no recursion, no unknown call'
  }
}
