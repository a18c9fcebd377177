/**
 * The costs of functions and methods in the modules that a file imports by a relative path. A wrong guess
 * only costs a chance to preempt (see cost.ts).
 */
import type { Analysis } from './analysis.ts'
import type { Binding } from './scope.ts'
import { bare, type Node, walk } from './syntax.ts'

/**
 * The costs that a module reports to its importers, counted as in cost.ts. Functions that can run long have
 * no entry, or an infinite cost.
 */
export interface ModuleCosts {
  /** By exported name; `=` is the value that a CommonJS module exports instead of an object. */
  readonly exports: ReadonlyMap<string, number>
  /** By method name. */
  readonly methods: ReadonlyMap<string, number>
}

/** Returns the costs of the module under a specifier, or null if they are unknown. */
export type ModuleCostsLookup = (specifier: string) => ModuleCosts | null

/** The key of a CommonJS module's whole export. */
export const wholeExport = '='

export class ImportedCosts {
  readonly #bindingOf: Analysis['bindingOf']
  readonly #neighbour: ModuleCostsLookup
  readonly #methods = new Map<string, number>()

  constructor({ program, bindingOf }: Analysis, neighbour: ModuleCostsLookup) {
    this.#bindingOf = bindingOf
    this.#neighbour = neighbour
    const specifiers = new Set<string>()
    walk(program, node => {
      const specifier = node.type === 'CallExpression' ? required(node) : node.source?.value
      if (typeof specifier === 'string' && specifier.startsWith('.')) specifiers.add(specifier)
    })
    for (const specifier of specifiers) {
      for (const [name, cost] of neighbour(specifier)?.methods ?? []) {
        this.#methods.set(name, Math.max(cost, this.#methods.get(name) ?? 0))
      }
    }
  }

  /** The highest cost of a method of this name there; undefined if none of these modules has one. */
  method(name: string): number | undefined {
    return this.#methods.get(name)
  }

  /** The cost of a call whose callee is imported; undefined if it is not imported, or not brief. */
  imported(callee: Node): number | undefined {
    let node = bare(callee)
    if (node.type === 'SequenceExpression') node = bare(node.expressions.at(-1))
    if (isCall(node)) node = bare(node.object)
    if (node.type === 'Identifier') {
      const source = this.#sourceOf(node)
      return source === null ? undefined : this.#find(source.specifier, source.name ?? wholeExport)
    }
    if (node.type !== 'MemberExpression' || node.computed || node.object.type !== 'Identifier')
      return undefined
    const source = this.#sourceOf(node.object)
    return source?.name === null ? this.#find(source.specifier, node.property.name) : undefined
  }

  #find(specifier: string, name: string): number | undefined {
    return specifier.startsWith('.') ? this.#neighbour(specifier)?.exports.get(name) : undefined
  }

  /**
   * The module that a variable comes from and the name of the export; the name is null for the whole module.
   */
  #sourceOf(node: Node): { specifier: string; name: string | null } | null {
    const binding = this.#bindingOf.get(node)
    if (binding == null || binding.written) return null
    const [declaration] = binding.declarations
    if (binding.kind === 'import') {
      if (binding.from === null || declaration === undefined) return null
      return { specifier: binding.from, name: importedName(declaration) }
    }
    if (binding.init !== null) {
      const specifier = requiredIn(bare(binding.init))
      return specifier === null ? null : { specifier, name: null }
    }
    return destructuredFrom(binding)
  }
}

/** `f.call`. */
function isCall({ type, computed, property, object }: Node): boolean {
  return type === 'MemberExpression' && !computed && property.name === 'call' && object.type !== 'Super'
}

function importedName({ type, imported }: Node): string | null {
  if (type === 'ImportNamespaceSpecifier') return null
  return type === 'ImportDefaultSpecifier' ? 'default' : (imported.name ?? imported.value)
}

/** `const { name } = require('…')`. */
function destructuredFrom({ name, declarations: [declaration] }: Binding): ReturnType<typeof source> | null {
  for (const { id, init } of (declaration?.declarations ?? []) as Node[]) {
    if (id.type !== 'ObjectPattern' || init == null) continue
    for (const { type, key, value, computed } of id.properties as Node[]) {
      if (type !== 'Property' || computed || value.name !== name) continue
      const specifier = requiredIn(bare(init))
      return specifier === null ? null : source(specifier, key.name)
    }
  }
  return null
}

function source(specifier: string, name: string): { specifier: string; name: string } {
  return { specifier, name }
}

/** The specifier of `require('…')`, also inside a call that wraps the module in a namespace. */
function requiredIn(node: Node): string | null {
  if (node.type !== 'CallExpression') return null
  const [first] = node.arguments as Node[]
  return required(node) ?? (first?.type === 'CallExpression' ? required(first) : null)
}

function required({ callee, arguments: list }: Node): string | null {
  if (callee.type !== 'Identifier' || callee.name !== 'require' || list.length !== 1) return null
  return typeof list[0].value === 'string' ? list[0].value : null
}
