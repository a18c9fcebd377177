/** The lowering as the emitter of a function that unwinds sees it. */
import type { Analysis } from '../../analysis/analysis.ts'
import { constructorOf, constructStops, superStops } from '../../analysis/construct.ts'
import type { Call, Func } from '../../analysis/functions.ts'
import type { Rope } from '../../output/rope.ts'
import type { Binding } from '../../analysis/scope.ts'
import { bare, isFunction, type Node, walk } from '../../analysis/syntax.ts'
import { writeAttachment, writeNamedBy } from '../writer/attach.ts'
import type { Context } from '../writer/context.ts'
import type { FramesLowering } from './frames.ts'
import { isSmall } from '../loops/weight.ts'
import { permissionIndex } from './permission.ts'
import { isSeenByCalleeOnly, type CalledParameter } from './unmarkedarguments.ts'

/** The source of names for the strips of a loop. */
export interface Temporaries {
  take(): string
  label(): string
}

export interface Host {
  readonly source: string
  readonly bindings: Analysis['bindingOf']
  /** A node that cannot suspend, written as it is. */
  node(node: Node, cx: Context): Rope
  runtime(name: string): string
  callOf(node: Node): Call | undefined
  staysPlain(call: Call): boolean
  /** True if `new` may run a constructor that unwinds. */
  constructStops(node: Node): boolean
  /** True for a read or an assignment that may call an accessor which unwinds. */
  mayAccess(node: Node): boolean
  /** True if `super(…)` may unwind. */
  superStops(call: Call): boolean
  /** The function of this file that `new` runs and that unwinds; null if it may be another. */
  constructed(node: Node, cx: Context): Func | null
  /** How a call of this known function is made. */
  wayTo(target: Func, cx: Context): 'frames' | 'generator' | 'unknown'
  twinName(target: Func): string
  privateTarget(callee: Node, cx: Context): Func | null
  privateName(name: string): string
  isFrames(func: Func): boolean
  /** The index of the argument by which the function takes its permission; null if it takes none. */
  permissionIndex(func: Func): number | null
  /** True if the function takes its permission as an argument, or calls a function that does. */
  passesPermission(func: Func): boolean
  spreadStops(node: Node): boolean
  /** The engine's message if the spread value is not iterable. */
  spreadText(node: Node): string
  /** The parameter that callers of the function may fill with an unmarked function. */
  calledParameter(func: Func): CalledParameter | null
  /** A function that unwinds, without its mark; null for any other. */
  unmarked(node: Node, cx: Context): Rope | null
  /** The same; null also if its own code exposes it. */
  unmarkedForCallee(node: Node, cx: Context): Rope | null
  renamed(node: Node, cx: Context): string | undefined
  /** An anonymous function or class, which takes the name of the variable that it is assigned to. */
  named(value: Node, id: Node, cx: Context): Rope
  /** The same, with this name. */
  namedAs(value: Node, name: string, cx: Context): Rope
  /** The same, with the name that this temporary holds. */
  namedBy(value: Node, key: string, cx: Context): Rope
  /** How many turns a strip of the loop has; null if it must not run in strips. */
  turnsInStrip(node: Node, labels: Node[]): number | null
  /** The loop in strips, with `safepoint` between them and without its init. */
  strips(node: Node, labels: Node[], cx: Context, safepoint: string, temporaries: Temporaries): Rope
  /** How many turns a strip has. */
  readonly strip: number
  bindingOf(id: Node): Binding | null | undefined
  /** The functions of a statement list that can be called by name. */
  availableIn(statements: readonly Node[], cx: Context): Context['available']
  /** True for a loop in which every call that may run long is of a function with safepoints. */
  callsHaveSafepoints(node: Node): boolean
  /** True for a loop over a list that is clearly short, which needs no safepoint. */
  isShortBody(node: Node): boolean
  /** A function declared in a block, as a value with its mark. */
  functionValue(node: Node, cx: Context): Rope
}

export function hostOf(lowering: FramesLowering): Host {
  return {
    source: lowering.source,
    bindings: lowering.analysis.bindingOf,
    strip: lowering.strip,
    node: (node, cx) => lowering.node(node, cx),
    runtime: name => lowering.names.runtime(name),
    callOf: node => lowering.callOf(node),
    staysPlain: call => lowering.staysPlain(call),
    constructStops: node => constructStops(node, lowering.analysis),
    mayAccess: node => lowering.accessors.reads.has(node) || lowering.accessors.writes.has(node),
    superStops: call => superStops(call, lowering.analysis),
    constructed: (node, cx) => {
      const target = constructorOf(node, lowering.analysis)
      if (target === null || target === 'short' || !cx.available.has(target)) return null
      return lowering.isItself(target) ? target : null
    },
    wayTo: (target, cx) => {
      if (!cx.available.has(target)) return 'unknown'
      if (lowering.isItself(target)) return 'frames'
      return lowering.isDirect(target) ? 'generator' : 'unknown'
    },
    twinName: target => lowering.twinName(target),
    privateTarget: (callee, cx) => lowering.privateTarget(callee, cx),
    privateName: name => lowering.privateName(name),
    isFrames: func => lowering.isItself(func),
    passesPermission: func => lowering.passesPermission(func),
    spreadStops: node => lowering.spreads.has(node),
    spreadText: node => lowering.spreads.get(node) ?? '',
    renamed: (node, cx) => lowering.renamed(node, cx),
    named: (value, id, cx) => lowering.named(value, id, cx),
    namedAs: (value, name, cx) => lowering.namedAs(value, name, cx),
    namedBy: (value, key, cx) => writeNamedBy(lowering, bare(value), key, cx),
    bindingOf: id => lowering.analysis.bindingOf.get(id),
    // A generator made in a block has no name of its own there: calls find it through its function.
    availableIn: (statements, cx) =>
      lowering.availableIn(
        [
          ...statements.filter(({ type }) => type !== 'FunctionDeclaration'),
          ...statements.filter(
            node => isFunction(node) && lowering.isItself(lowering.analysis.funcOf.get(node)!),
          ),
        ],
        cx,
      ),
    callsHaveSafepoints: node => callsHaveSafepoints(lowering, node),
    isShortBody: node => isSmall(node.body) && !makesObjects(node.body),
    unmarked: (node, cx) => unmarked(lowering, node, cx),
    unmarkedForCallee: (node, cx) =>
      isSeenByCalleeOnly(lowering.analysis.funcOf.get(node)!) ? unmarked(lowering, node, cx) : null,
    permissionIndex,
    calledParameter: func => lowering.calledParameter(func),
    functionValue: (node, cx) => {
      const func = lowering.analysis.funcOf.get(node)!
      const text = lowering.plain(node, func, cx)
      return lowering.attachesTwin(func, cx) ? writeAttachment(lowering, func, text, cx) : text
    },
    turnsInStrip: (node, labels) => lowering.turnsInStrip(node, labels),
    strips: (node, labels, cx, safepoint, temporaries) =>
      lowering.strips(node, labels, cx, safepoint, temporaries),
  }
}

function unmarked(lowering: FramesLowering, node: Node, cx: Context): Rope | null {
  const func = lowering.analysis.funcOf.get(node)!
  return lowering.isItself(func) && lowering.attachesTwin(func, cx) ? lowering.plain(node, func, cx) : null
}

/** True if every function that a turn of the loop calls is in this file or brief. */
function callsHaveSafepoints(lowering: FramesLowering, loop: Node): boolean {
  let all = true
  walk(loop, node => {
    if (isFunction(node)) return false
    const call = lowering.callOf(node)
    if (call !== undefined && call.reach === 'unknown') {
      const callee = node.callee === undefined ? null : bare(node.callee)
      const name = callee?.type === 'MemberExpression' && !callee.computed ? callee.property.name : null
      if (name === null || !lowering.analysis.ownMethods.has(name)) all = false
    }
    return all
  })
  return all
}

function makesObjects(body: Node): boolean {
  let found = false
  walk(body, node => {
    if (node.type === 'NewExpression') found = true
    return !found
  })
  return found
}
