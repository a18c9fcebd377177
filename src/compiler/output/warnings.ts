/** Warnings about functions that stay plain: a task cannot be preempted while they run. */
import { type Analysis, globalName } from '../analysis/analysis.ts'
import { constructorOf } from '../analysis/construct.ts'
import type { Reporter } from './diagnostics.ts'
import type { Func } from '../analysis/functions.ts'
import { bare, type Node } from '../analysis/syntax.ts'

/** Warns of a refused function if it is marked itself, or if it can run long. */
export function warn(
  analysis: Analysis,
  reporter: Reporter,
  everything: boolean,
  unwinds: (func: Func) => boolean,
): void {
  const { funcs, misplaced, bindingOf } = analysis
  for (const node of everything ? [] : misplaced) {
    reporter.warn(
      'misplaced-directive',
      "'use task' has no effect here: make it the first statement of a function or of a module",
      node,
    )
  }
  if (!everything) {
    warnOfUnmarked(funcs, reporter)
    warnOfMadeCode(analysis, reporter)
  }
  for (const func of funcs) {
    if (func.twin && !everything) {
      warnOfDefaults(func, reporter)
      warnOfNew(func, analysis, reporter, unwinds)
    }
    if (func.mark === null || func.refusals.length === 0) continue
    const { code, why, place } = func.refusals[0]!
    if (code === 'shadowed') continue
    if (everything) {
      if (code === 'internal' || func.calls.some(({ node }) => isAtomic(node, bindingOf))) {
        reporter.warn(code, `\`${func.name}\` is not checked: ${why}`, clip(place))
      }
      continue
    }
    const long =
      func.loops.length > 0 ||
      func.recursive ||
      func.calls.some(({ target }) => target?.twin === true && target.long)
    if (func.mark !== 'function' && !long && code !== 'internal') continue
    const { name, kind } = func
    const what = kind === 'initializer' ? `The ${name}` : `\`${name}\``
    const effect = func.mark === 'function' || !long ? 'stays plain' : 'can run long and stays plain'
    reporter.warn(code, `${what} ${effect}: ${why}`, clip(place))
  }
}

/**
 * Warns of `new` of a function of this file that can run long and stays plain. Classes have their own
 * warnings.
 */
function warnOfNew(
  func: Func,
  analysis: Analysis,
  reporter: Reporter,
  unwinds: (func: Func) => boolean,
): void {
  for (const node of func.constructs) {
    const target = constructorOf(node, analysis)
    if (target === null || target === 'short' || target.loops.length === 0 || unwinds(target)) continue
    if (target.kind === 'constructor' && target.mark !== null) continue
    const name = target.kind === 'constructor' ? bare(node.callee).name : target.name
    const why =
      target.mark === null
        ? "it is not marked: begin it with 'use task'"
        : '`new` can resume only a constructor that unwinds, and this is a generator'
    reporter.warn('constructor', `\`new ${name}\` can run long and stays plain: ${why}`, clip(node))
  }
}

/** Parameters are set before the resumable form can suspend for the first time. */
function warnOfDefaults({ name, node, calls }: Func, reporter: Reporter): void {
  const last: Node | undefined = node.params.at(-1)
  if (last === undefined) return
  const long = calls.find(
    ({ node: { start }, target }) =>
      start < last.end && start >= node.params[0].start && target?.twin && target.long,
  )
  if (long === undefined) return
  const why = 'parameters are set before the function can suspend for the first time'
  reporter.warn(
    'parameter-default',
    `A default of \`${name}\` can run long and stays plain: ${why}`,
    clip(long.node),
  )
}

const RUNS_TEXT = new Set([
  'runInThisContext',
  'runInNewContext',
  'runInContext',
  'compileFunction',
  'Script',
])

/**
 * The compiler never sees code that the program makes from text at run time. `Function('return this')` and
 * the like are brief.
 */
function warnOfMadeCode({ root, funcs, bindingOf }: Analysis, reporter: Reporter): void {
  const isMarked = funcs.some(({ mark }) => mark === 'module')
  for (const func of new Set([root, ...funcs])) {
    if (func === root ? !isMarked : func.mark === null) continue
    for (const node of [...func.constructs, ...func.calls.map(call => call.node)]) {
      const how = makesCode(node, bindingOf)
      if (how === null || node.arguments.every((argument: Node) => argument.type === 'Literal')) continue
      const why = 'the program makes it from text at run time; move it into a module'
      reporter.warn('made-code', `the code that \`${how}\` makes here stays plain: ${why}`, clip(node))
    }
  }
}

function makesCode(node: Node, bindingOf: Analysis['bindingOf']): string | null {
  const callee = node.callee === undefined ? null : bare(node.callee)
  if (callee === null) return null
  if (globalName(callee, bindingOf) === 'Function')
    return node.type === 'NewExpression' ? 'new Function' : 'Function'
  if (callee.type !== 'MemberExpression' || callee.computed || bare(callee.object).name !== 'vm') return null
  return RUNS_TEXT.has(callee.property.name) ? `vm.${callee.property.name}` : null
}

function clip({ start, end }: { start: number; end: number }): { start: number; end: number } {
  return { start, end: Math.min(end, start + 80) }
}

/** True for a call of `Atomics`. */
function isAtomic(node: Node, bindingOf: Analysis['bindingOf']): boolean {
  const callee = node.callee === undefined ? null : bare(node.callee)
  return callee?.type === 'MemberExpression' && globalName(callee.object, bindingOf) === 'Atomics'
}

/** A task cannot be preempted while it calls an unmarked function of this file that loops. */
function warnOfUnmarked(funcs: Func[], reporter: Reporter): void {
  const told = new Set<Func>()
  for (const func of funcs) {
    if (!func.twin) continue
    for (const { target, node } of func.calls) {
      if (target === null || target.mark !== null || told.has(target)) continue
      if (target.loops.length === 0 && !target.recursive) continue
      told.add(target)
      const what = `\`${target.name}\` can run long and is not marked, so \`${func.name}\` cannot be preempted inside it`
      reporter.warn('unmarked', `${what}: begin it with 'use task'`, clip(node))
    }
  }
}
