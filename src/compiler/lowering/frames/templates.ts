/**
 * Tagged templates. Each gives its tag the same array of strings every time, by which tags remember what they
 * made of it. A function that unwinds has two forms, so its templates stand outside of it: one function of
 * the module for each, which returns the array. A task that moves finds the array by name.
 */
import { bare, type Node, walk } from '../../analysis/syntax.ts'
import type { Names } from '../writer/names.ts'

interface Template {
  readonly name: string
  readonly key: string
}

export class Templates {
  readonly #names: Names
  readonly #known = new Map<Node, Template>()
  readonly #counts = new Map<string, number>()
  /** Templates that are called as the constructor of a `new`, which a call would end too early. */
  readonly #built = new Set<Node>()
  /** The functions that return the arrays. */
  code = ''

  constructor(program: Node, names: Names) {
    this.#names = names
    walk(program, node => {
      if (node.type !== 'NewExpression') return
      for (let at = bare(node.callee); at != null; at = at.object ?? at.tag)
        if (at.type === 'TaggedTemplateExpression') this.#built.add(at)
    })
  }

  /** The expression for the array of a template; null: the template stays where it is. */
  arrayOf(node: Node): string | null {
    if (this.#built.has(node)) return null
    let known = this.#known.get(node)
    if (known === undefined) {
      const name = this.#names.fresh('template')
      const raw = (node.quasi.quasis as Node[]).map(({ value }) => value.raw as string)
      const text = `\`${raw.join('${0}')}\``
      const count = this.#counts.get(text) ?? 0
      this.#counts.set(text, count + 1)
      known = { name, key: count === 0 ? text : `${text}~${count}` }
      this.#known.set(node, known)
      this.code += `\nfunction ${name}() { return ${this.#names.runtime('template')}${text}; }`
    }
    return `${known.name}()`
  }

  /** Getters of the arrays, by names that a change of the code around them does not change. */
  get getters(): string[] {
    return Array.from(
      this.#known.values(),
      ({ name, key }) => `get ${JSON.stringify(key)}(){return ${name}()}`,
    )
  }
}
