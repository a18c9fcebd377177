/**
 * A loop around one short loop. A `yield` inside a loop slows down its every turn. So such a nest is written
 * twice: once without a `yield`, which the code leaves for the other copy when the inner loop is long.
 */
import type { Analysis } from '../../analysis/analysis.ts'
import { join, type Rope, rope } from '../../output/rope.ts'
import type { Binding } from '../../analysis/scope.ts'
import { boundNames, isFunction, isLoop, type Node, unlabeled, walk } from '../../analysis/syntax.ts'
import type { Context } from '../writer/context.ts'
import type { GeneratorLowering } from '../generator/generator.ts'
import { firstTest, turnJumps, writeManyTurns } from './striploops.ts'
import { type Strip, stripOf } from './strip.ts'
import { nestWeight } from './weight.ts'

interface Nest {
  /** The jumps of the outer loop. */
  outer: Strip
  inner: Node
  innerStrip: Strip
  before: Node[]
  after: Node[]
  /** Variables of a turn, declared around both copies. */
  shared: string[]
}

/** The nest that a loop is, or null. The loop contains no call. */
export function nestOf(loop: Node, labels: Node[], analysis: Analysis): Nest | null {
  if (loop.type !== 'ForStatement' && loop.type !== 'WhileStatement') return null
  if (loop.body.type !== 'BlockStatement') return null
  const outer = stripOf(loop, labels, analysis)
  if (outer === null) return null
  const statements: Node[] = loop.body.body
  const at = statements.findIndex(statement => isLoop(unlabeled(statement).inner))
  if (at === -1) return null
  const { inner, labels: innerLabels } = unlabeled(statements[at]!)
  const innerStrip = stripOf(inner, innerLabels, analysis)
  if (innerStrip === null || innerStrip.estimate === null) return null
  const before = statements.slice(0, at)
  const after = statements.slice(at + 1)
  if ([...before, ...after, inner.body].some(containsLoop)) return null
  const shared = sharedVariables([...before, ...after], inner, loop, analysis)
  return shared === null ? null : { outer, inner, innerStrip, before, after, shared }
}

function containsLoop(node: Node): boolean {
  let found = false
  walk(node, child => {
    if (isLoop(child) || isFunction(child) || child.type.startsWith('Class')) found = true
    return !found
  })
  return found
}

/** The names of a turn's own variables, or null if one of them cannot be moved out of the turn. */
function sharedVariables(statements: Node[], inner: Node, loop: Node, analysis: Analysis): string[] | null {
  const bindings: Binding[] = []
  const declarations = statements.filter(({ type }) => type === 'VariableDeclaration')
  if (inner.init?.type === 'VariableDeclaration') declarations.push(inner.init)
  for (const declaration of declarations) {
    if (declaration.kind === 'var') continue
    if (declaration.kind.includes('using')) return null
    for (const { id } of declaration.declarations) {
      if (id.type !== 'Identifier') return null
      for (const name of boundNames(id)) {
        const binding = analysis.bindingOf.get(name) ?? null
        if (binding === null || !isMovable(binding, name)) return null
        bindings.push(binding)
      }
    }
  }
  const names = new Map(bindings.map(binding => [binding.name, binding]))
  if (names.size !== bindings.length) return null
  let alone = true
  walk(loop, node => {
    if (node.type === 'Identifier' && names.has(node.name)) {
      const meant = analysis.bindingOf.get(node)
      // The name of a property has no binding, and does not count.
      if (meant !== undefined && meant !== names.get(node.name)) alone = false
    }
    return alone
  })
  return alone ? [...names.keys()] : null
}

/** True if the variable is only used after its declaration, and by no closure. */
function isMovable(binding: Binding, declared: Node): boolean {
  if (binding.volatile || binding.captured || binding.declarations.length !== 1) return false
  return binding.references.every(
    ({ node, write }) => node.start > declared.start && !(write && binding.kind === 'const'),
  )
}

export function writeNest(
  lowering: GeneratorLowering,
  node: Node,
  { outer, inner, innerStrip, before, after, shared }: Nest,
  cx: Context,
): Rope {
  const frame = cx.frame!
  const all = frame.label()
  const turn = frame.label()
  const left = frame.label()
  const innerAll = frame.label()
  const innerTurn = frame.label()
  const count = frame.take()
  const bound = frame.take()
  const around = turnJumps(outer, cx, all, turn)
  const within = turnJumps(innerStrip, around, innerAll, innerTurn)
  const write = (statements: Node[]): Rope =>
    join(
      statements.map(statement => rope`${writeHoisted(lowering, statement, around)};`),
      ' ',
    )
  const test = node.test === null ? rope`` : rope`if (!(${lowering.node(node.test, around)})) break ${all};`
  const update =
    node.type === 'ForStatement' && node.update !== null
      ? rope`${lowering.node(node.update, around)};`
      : rope``
  const innerInit = inner.init === null ? rope`` : rope`${writeHoisted(lowering, inner.init, around)};`
  const { first, isShort } = firstTest(lowering, inner, innerStrip, within, bound)
  const innerTest = lowering.node(inner.test, within)
  const innerTurns = rope`${innerTurn}: { ${lowering.node(inner.body, within)} } ${lowering.node(inner.update, within)};`
  const rest = write(after)
  const turns = Math.max(1, Math.trunc(lowering.strip / nestWeight))
  const short = rope`${innerAll}: if (${first}) { if (!${isShort}) break ${left}; do { ${innerTurns} } while (${innerTest}); }`
  const fast = rope`for (${count} = ${String(turns)}; ${count} > 0; ${count}--) { ${test} ${turn}: { ${write(before)} ${innerInit} ${short} ${rest} } ${update} }`
  const innerBody = rope`${innerTurn}: { ${lowering.node(inner.body, within)} }`
  const long = rope`${innerAll}: { ${writeManyTurns(lowering, inner, innerStrip, within, bound, innerBody, innerAll)} }`
  frame.give(count, bound)
  const variables = shared.length === 0 ? '' : `let ${shared.join(', ')};`
  const strip = rope`${left}: { ${fast} }`
  // The count is used up if the strip ran to its end, and not if the code left it.
  const between = rope`if (${count} <= 0) { ${lowering.safepoint()} } else { ${turn}: { ${long} ${rest} } ${update} }`
  // The first strip, mostly the only one, is outside the loop that contains the stops.
  return rope`{ ${variables} ${lowering.init(node, cx)} ${all}: { ${strip} for (;;) { ${between} ${strip} } } }`
}

/** A statement of a turn whose variables are declared outside it. */
function writeHoisted(lowering: GeneratorLowering, statement: Node, cx: Context): Rope {
  if (statement.type !== 'VariableDeclaration' || statement.kind === 'var')
    return lowering.node(statement, cx)
  const parts = statement.declarations.map(({ id, init }: Node) =>
    init === null ? rope`${id.name} = void 0` : rope`${id.name} = ${lowering.node(init, cx)}`,
  )
  return join(parts, ', ')
}
