/** The costs of the functions that a module exports, in a package that is compiled whole. */
import type { Analysis } from './analysis.ts'
import { analyze } from './analyze.ts'
import { type ModuleCosts, wholeExport } from './importedcosts.ts'
import { classify } from './classify.ts'
import { isExports } from '../loading/commonjs.ts'
import { Reporter } from '../output/diagnostics.ts'
import type { Func } from './functions.ts'
import { Lines } from '../output/lines.ts'
import { isTooDeep, parse } from './parse.ts'
import { bare, isFunction, type Node, walk } from './syntax.ts'

/** Null if the text cannot be parsed. */
export function exportedCosts(source: string, file: string): ModuleCosts | null {
  if (isTooDeep(source)) return null
  const reporter = new Reporter(file, new Lines(source))
  const parsed = parse(source, file, reporter)
  if (parsed === null) return null
  const analysis = analyze(parsed.program, parsed.isModule)
  const { costs, methods } = classify(analysis, { everything: false, whole: true })
  const costOf = (func: Func | null | undefined): number => costs.get(func!) ?? Number.POSITIVE_INFINITY
  const exports = new Map<string, number>()
  const give = (name: string, func: Func | null): void => {
    exports.set(name, Math.max(costOf(func), exports.get(name) ?? 0))
  }
  if (parsed.isModule) exportedByName(analysis, give)
  else exportedByAssignment(analysis, give)
  return { exports: onlyBrief(exports), methods: mostOf(methods, costOf) }
}

function onlyBrief(exports: ReadonlyMap<string, number>): ReadonlyMap<string, number> {
  return new Map([...exports].filter(([, cost]) => cost < Number.POSITIVE_INFINITY))
}

function mostOf(
  methods: ReadonlyMap<string, readonly Func[] | null>,
  costOf: (func: Func) => number,
): ReadonlyMap<string, number> {
  const most = new Map<string, number>()
  for (const [name, funcs] of methods) {
    most.set(name, funcs === null ? Number.POSITIVE_INFINITY : Math.max(...funcs.map(costOf)))
  }
  return most
}

type Give = (name: string, func: Func | null) => void

function functionAt({ bindingOf, funcOf }: Analysis, node: Node): Func | null {
  const value = bare(node)
  if (value.type === 'Identifier') return bindingOf.get(value)?.target ?? null
  return isFunction(value) ? (funcOf.get(value) ?? null) : null
}

function exportedByName(analysis: Analysis, give: Give): void {
  for (const { type, declaration, specifiers, source } of analysis.program.body as Node[]) {
    if (type === 'ExportDefaultDeclaration') give('default', functionAt(analysis, declaration))
    if (type !== 'ExportNamedDeclaration' || source != null) continue
    if (declaration != null && isFunction(declaration))
      give(declaration.id.name, functionAt(analysis, declaration))
    for (const { id, init } of (declaration?.declarations ?? []) as Node[]) {
      if (id.type === 'Identifier') give(id.name, init === null ? null : functionAt(analysis, init))
    }
    for (const { local, exported } of (specifiers ?? []) as Node[]) {
      give(exported.name ?? exported.value, functionAt(analysis, local))
    }
  }
}

function exportedByAssignment(analysis: Analysis, give: Give): void {
  walk(analysis.program, node => {
    if (node.type !== 'AssignmentExpression' || node.operator !== '=') return
    const { left } = node
    let right = bare(node.right)
    while (right.type === 'AssignmentExpression') right = bare(right.right)
    // `exports.a = exports.b = void 0` only declares the names.
    if (right.type === 'UnaryExpression' && right.operator === 'void') return
    if (left.type !== 'MemberExpression' || left.computed) return
    if (isExports(left.object)) give(left.property.name, functionAt(analysis, right))
    else if (isExports(left)) {
      if (right.type !== 'ObjectExpression') give(wholeExport, functionAt(analysis, right))
      for (const { type, key, value, computed } of (right.properties ?? []) as Node[]) {
        if (type === 'Property' && !computed) give(key.name ?? key.value, functionAt(analysis, value))
      }
    }
  })
}
