/**
 * Decides which functions can run long. In a package that is compiled whole, each function has a cost: the
 * cost of its calls, times the turns of the loops around them. A function is long if it is recursive, if it
 * has a loop whose number of turns is unknown, or if it costs more than `brief_calls`. In other files, every
 * loop and every call of an unknown function makes a function long.
 *
 * In such a package, `x.size()` calls the functions that the file stores under `size`, if it stores only
 * functions there. If all of them are brief, the call stays plain. A function of that name from another file
 * is then called without the permission to unwind: its result is the same, but it is not preempted.
 */
import type { Analysis } from './analysis.ts'
import { blockingMethods, shortMethods } from './builtins.ts'
import { isBriefBuiltIn } from './aliases.ts'
import type { ImportedCosts } from './importedcosts.ts'
import type { ImplicitCall } from './construct.ts'
import { connectedGroups } from './cycles.ts'
import type { Call, Func } from './functions.ts'
import { type Methods, methodsOf } from './methods.ts'
import { bare, contains, isFunction, type Node, walk } from './syntax.ts'

/** A function that leads to at most this many calls is brief: about ten microseconds. */
const briefCalls = 1_000
/** The cost of a built-in that walks over a list or a string. */
const lightCalls = 4

/** The cost of each function, and the functions behind each method name. */
export interface Costs {
  readonly costs: ReadonlyMap<Func, number>
  readonly methods: Methods
}

const noMethods: Methods = new Map()

/** Sets `long` and, in a package that is compiled whole, the calls of unknown methods that stay plain. */
export function findLong(
  analysis: Analysis,
  whole: boolean,
  made: ReadonlyMap<Func, readonly ImplicitCall[]>,
  beyond: ImportedCosts | null,
): Costs {
  const methods = whole ? methodsOf(analysis) : noMethods
  const ways = whole ? targetsOf(analysis, methods, beyond) : knownTargets(analysis, 0)
  const next = (func: Func): Func[] => [
    ...func.calls.flatMap(call => ways.get(call)?.funcs ?? []),
    ...(made.get(func) ?? []).map(({ target }) => target),
  ]
  const costs = new Map<Func, number>()
  for (const group of connectedGroups(analysis.funcs, next)) {
    const [func] = group
    const around = group.length > 1 || next(func!).includes(func!)
    for (const member of group) {
      const cost = around ? Number.POSITIVE_INFINITY : costOf(member, ways, costs, analysis, whole, made)
      member.long = cost > briefCalls
      costs.set(member, member.long ? Number.POSITIVE_INFINITY : cost)
    }
  }
  if (whole) {
    for (const { calls } of analysis.funcs) {
      for (const call of calls) {
        const way = ways.get(call)
        call.plain = call.target === null && isBrief(way)
        call.cost = costOfCall(call, way, costs)
      }
    }
  }
  return { costs, methods }
}

/** The functions of the file that a call can reach, and the cost of its other targets. */
interface CallTargets {
  readonly funcs: readonly Func[]
  readonly cost: number
}

function isBrief(way: CallTargets | undefined): boolean {
  return way !== undefined && way.cost <= briefCalls && way.funcs.every(({ long }) => !long)
}

function knownTargets({ funcs }: Analysis, cost: number): Map<Call, CallTargets> {
  const ways = new Map<Call, CallTargets>()
  for (const { calls } of funcs) {
    for (const call of calls) if (call.target !== null) ways.set(call, { funcs: [call.target], cost })
  }
  return ways
}

/** The targets of each call, as far as the file and its imports show them. */
function targetsOf(
  analysis: Analysis,
  methods: Methods,
  beyond: ImportedCosts | null,
): Map<Call, CallTargets> {
  const ways = knownTargets(analysis, 1)
  for (const { calls } of analysis.funcs) {
    for (const call of calls) {
      const { target, reach, node } = call
      if (target !== null || reach === 'short' || node.callee === undefined) continue
      const callee = calledBy(bare(node.callee))
      const imported = beyond?.imported(callee)
      if (isBriefBuiltIn(callee, analysis)) ways.set(call, { funcs: [], cost: lightCalls })
      else if (imported !== undefined) ways.set(call, { funcs: [], cost: imported + 1 })
      else if (callee.type === 'MemberExpression' && !callee.computed) {
        const way = methodTargets(callee.property.name, reach === 'light', methods, beyond)
        if (way !== null) ways.set(call, withoutDelegates(way, call.func, callee.property.name))
      }
    }
  }
  return ways
}

/**
 * True if the function always calls the method of this name on another object. That call cannot lead back to
 * it, or it would never end.
 */
function delegates({ node }: Func, name: string): boolean {
  const statements: Node[] = node.body?.type === 'BlockStatement' ? node.body.body : []
  for (const statement of statements) {
    const value: Node | null =
      statement.type === 'ReturnStatement' ? statement.argument : statement.expression
    const callee = value?.type === 'CallExpression' ? bare(value.callee) : null
    const isMethod = callee?.type === 'MemberExpression' && !callee.computed && callee.property.name === name
    if (isMethod && callee.object.type !== 'ThisExpression') return true
    if (mayLeave(statement)) return false
  }
  return false
}

function mayLeave(statement: Node): boolean {
  let found = false
  walk(statement, node => {
    if (isFunction(node)) return false
    if (node.type === 'ReturnStatement' || node.type === 'ThrowStatement') found = true
    return !found
  })
  return found
}

/** A function that only delegates leads to the functions that do the work, not to itself. */
function withoutDelegates(way: CallTargets, func: Func, name: string): CallTargets {
  if (!way.funcs.includes(func) || !delegates(func, name)) return way
  return { ...way, funcs: way.funcs.filter(other => !delegates(other, name)) }
}

/** The called function: `f` in `f.call(…)` and `f.apply(…)`. */
function calledBy(callee: Node): Node {
  if (callee.type !== 'MemberExpression' || callee.computed || callee.object.type === 'Super') return callee
  const { name } = callee.property
  const object = bare(callee.object)
  const isNamed = object.type === 'Identifier' || (object.type === 'MemberExpression' && !object.computed)
  return isNamed && (name === 'call' || name === 'apply') ? object : callee
}

/** The targets of a method of that name, or null if they are unknown. */
function methodTargets(
  name: string,
  light: boolean,
  methods: Methods,
  beyond: ImportedCosts | null,
): CallTargets | null {
  const outside = beyond?.method(name)
  const inside = methods.get(name)
  if (light) return { funcs: [], cost: outside ?? (shortMethods.has(name) ? 0 : lightCalls) }
  if (blockingMethods.has(name) || inside === null) return null
  if (inside === undefined) return outside === undefined ? null : { funcs: [], cost: outside + 1 }
  return { funcs: inside, cost: (outside ?? 0) + 1 }
}

function costOf(
  func: Func,
  ways: ReadonlyMap<Call, CallTargets>,
  costs: ReadonlyMap<Func, number>,
  analysis: Analysis,
  whole: boolean,
  made: ReadonlyMap<Func, readonly ImplicitCall[]>,
): number {
  const { loops } = func
  const turns = loops.map(loop => (whole ? turnsOf(loop, func, analysis) : Number.POSITIVE_INFINITY))
  const times = (node: Node): number =>
    loops.reduce((all, loop, at) => (contains(loop, node) ? all * turns[at]! : all), 1)
  let cost = loops.reduce((all, loop) => all + times(loop), 0)
  for (const call of func.calls) {
    const each = costOfCall(call, ways.get(call), costs)
    if (each > 0) cost += each * times(call.node)
    if (cost > briefCalls) break
  }
  for (const { node, target } of made.get(func) ?? []) {
    const each = (costs.get(target) ?? Number.POSITIVE_INFINITY) + (whole ? 1 : 0)
    if (each > 0) cost += each * times(node)
  }
  return cost
}

function costOfCall(call: Call, way: CallTargets | undefined, costs: ReadonlyMap<Func, number>): number {
  if (way !== undefined) {
    let most = 0
    for (const func of way.funcs) most = Math.max(most, costs.get(func) ?? Number.POSITIVE_INFINITY)
    return most + way.cost
  }
  const isShort = call.reach === 'light' && shortMethods.has(bare(call.node.callee).property.name)
  return call.reach === 'short' || isShort ? 0 : Number.POSITIVE_INFINITY
}

/** The number of turns of a loop that counts from one number to another; infinite if unknown. */
function turnsOf(loop: Node, func: Func, { bindingOf }: Analysis): number {
  const none = Number.POSITIVE_INFINITY
  const { type, init, test, update } = loop
  if (type !== 'ForStatement' || init == null) return none
  if (test?.type !== 'BinaryExpression' || !/^[<>]=?$/.test(test.operator)) return none
  const counter = test.left
  if (counter.type !== 'Identifier') return none
  const to = numberOf(test.right, bindingOf)
  const from = startOf(init, counter.name)
  if (from === null || to === null) return none
  const start = numberOf(from, bindingOf)
  const step = stepOf(update, counter.name)
  const binding = bindingOf.get(counter)
  if (start === null || step === null || binding == null || binding.volatile) return none
  // Inside the loop only its own update changes the counter. Other loops of the function may use the counter.
  const isElsewhere = (node: Node): boolean =>
    contains(update, node) || contains(init, node) || !contains(loop, node)
  const isOwn = binding.references.every(
    ({ node, write, func: by }) => !write || (by === func && isElsewhere(node)),
  )
  if (!isOwn || !binding.declarations.every(isElsewhere)) return none
  const turns = Math.ceil((to - start) / step) + 1
  return turns >= 0 ? turns : none
}

/** The initial value of the counter: `let i = 0`, `i = 0`, or one of several such parts. */
function startOf(init: Node, counter: string): Node | null {
  if (init.type === 'VariableDeclaration')
    return init.declarations.find(({ id }: Node) => id.name === counter)?.init ?? null
  const parts: Node[] = init.type === 'SequenceExpression' ? init.expressions : [init]
  const sets = parts.filter(part => part.left?.name === counter)
  return sets.length === 1 && sets[0]!.type === 'AssignmentExpression' && sets[0]!.operator === '='
    ? sets[0]!.right
    : null
}

/** A number literal, or a variable that always holds one. A `var` that is not set yet ends the loop early. */
function numberOf(node: Node, bindingOf: Analysis['bindingOf']): number | null {
  if (node.type === 'Literal') return typeof node.value === 'number' ? node.value : null
  const binding = node.type === 'Identifier' ? bindingOf.get(node) : null
  if (binding == null || binding.init?.type !== 'Literal') return null
  if (binding.kind !== 'const' && (binding.written || (binding.kind !== 'var' && binding.kind !== 'let')))
    return null
  return typeof binding.init.value === 'number' ? binding.init.value : null
}

function stepOf(update: Node | null, counter: string): number | null {
  if (update?.type === 'UpdateExpression' && update.argument.name === counter) {
    return update.operator === '++' ? 1 : -1
  }
  if (update?.type !== 'AssignmentExpression' || update.left.name !== counter) return null
  const by: unknown = update.right.type === 'Literal' ? update.right.value : null
  if (typeof by !== 'number' || by <= 0) return null
  return update.operator === '+=' ? by : update.operator === '-=' ? -by : null
}
