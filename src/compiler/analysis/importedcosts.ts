/**
 * What a file may take for granted of the modules next to it, which it imports by a relative path: which of
 * their functions and methods are brief. A wrong guess costs a chance to preempt and nothing else, as in
 * cost.ts.
 */
import type { Analysis } from './analysis.ts'
import type { Binding } from './scope.ts'
import { bare, type Node, walk } from './syntax.ts'

/**
 * What a module tells those that import it. Costs are counted as in cost.ts; what is not brief has none, or
 * no end of it.
 */
export interface ModuleCosts {
  /** By the name that it is exported under; `=` is what a CommonJS module exports instead of an object. */
  readonly exports: ReadonlyMap<string, number>
  /** By the name of the method. */
  readonly methods: ReadonlyMap<string, number>
}

/** Finds what the module under a specifier tells; null: nothing is known of it. */
export type ModuleCostsLookup = (specifier: string) => ModuleCosts | null

/** The name of what is exported instead of an object. */
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

  /** What a method of this name costs there at most; undefined: none of these modules has one. */
  method(name: string): number | undefined {
    return this.#methods.get(name)
  }

  /** What a call costs whose callee is imported; undefined: it is not, or is not brief. */
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

  /** Where a variable comes from: a module, and the name of the export; null for all of the module. */
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

/** The specifier of `require('…')`, also inside of a call that makes a namespace of it. */
function requiredIn(node: Node): string | null {
  if (node.type !== 'CallExpression') return null
  const [first] = node.arguments as Node[]
  return required(node) ?? (first?.type === 'CallExpression' ? required(first) : null)
}

function required({ callee, arguments: list }: Node): string | null {
  if (callee.type !== 'Identifier' || callee.name !== 'require' || list.length !== 1) return null
  return typeof list[0].value === 'string' ? list[0].value : null
}
