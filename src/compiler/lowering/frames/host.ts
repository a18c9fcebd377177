/** The one thing that the emitter of a function that unwinds knows of the lowering that it writes for. */
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

/** Where the strips of a loop get the names that they need. */
export interface Temporaries {
  take(): string
  label(): string
}

/** What the emitter asks. */
export interface Host {
  readonly source: string
  /** The variable that each name means. */
  readonly bindings: Analysis['bindingOf']
  /** A node that cannot stop, as it stands. */
  node(node: Node, cx: Context): Rope
  runtime(name: string): string
  callOf(node: Node): Call | undefined
  staysPlain(call: Call): boolean
  /** True for `new` of something that may unwind. */
  constructStops(node: Node): boolean
  /** True for a read, or an assignment, that may call an accessor which unwinds. */
  mayAccess(node: Node): boolean
  /** True for `super(…)` of something that may unwind. */
  superStops(call: Call): boolean
  /** The function of this file that `new` runs and that unwinds; null: perhaps another. */
  constructed(node: Node, cx: Context): Func | null
  /** How a call of this known function is made. */
  wayTo(target: Func, cx: Context): 'frames' | 'generator' | 'unknown'
  twinName(target: Func): string
  privateTarget(callee: Node, cx: Context): Func | null
  privateName(name: string): string
  isFrames(func: Func): boolean
  /** After how many arguments the function takes its permission as one more; null: it does not. */
  permissionIndex(func: Func): number | null
  /** True when the function takes its permission as an argument, or calls one that does. */
  passesPermission(func: Func): boolean
  spreadStops(node: Node): boolean
  /** What the engine says where what is spread is no list. */
  spreadText(node: Node): string
  /** The parameter for which callers of the function may vouch. */
  calledParameter(func: Func): CalledParameter | null
  /** A function that unwinds, as it is made but without its mark; null for any other. */
  unmarked(node: Node, cx: Context): Rope | null
  /** The same; null also for one that its own code shows to others. */
  unmarkedForCallee(node: Node, cx: Context): Rope | null
  renamed(node: Node, cx: Context): string | undefined
  /** A function or class without a name, which takes that of the variable it is given to. */
  named(value: Node, id: Node, cx: Context): Rope
  /** The same, which takes this name. */
  namedAs(value: Node, name: string, cx: Context): Rope
  /** The same, which takes the name that this temporary holds. */
  namedBy(value: Node, key: string, cx: Context): Rope
  /** How many turns a strip of the loop has; null when it must not be run in strips. */
  turnsInStrip(node: Node, labels: Node[]): number | null
  /** The loop in strips, with `safepoint` between them and without its init. */
  strips(node: Node, labels: Node[], cx: Context, safepoint: string, temporaries: Temporaries): Rope
  /** How many turns a strip has. */
  readonly strip: number
  bindingOf(id: Node): Binding | null | undefined
  /** What of a list of statements can be called by name. */
  availableIn(statements: readonly Node[], cx: Context): Context['available']
  /** True for a loop in which every call that may take long is of a function that has safepoints. */
  callsHaveSafepoints(node: Node): boolean
  /** True for a loop over what is plainly a short list, which needs no safepoint. */
  isShortBody(node: Node): boolean
  /** A function declared in a block, as a value with its mark. */
  functionValue(node: Node, cx: Context): Rope
}

/** The lowering as the emitter sees it. */
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
    // A generator made in a block has no name of its own there: it is found by what its function carries.
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

/** True when all that a turn of the loop calls is of this file, or brief. */
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
