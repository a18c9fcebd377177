/**
 * Finds the modules that a module names by `new URL('./work.ts', import.meta.url)`: those that CPUs import,
 * and the entries of workers. A bundler that does not know them would copy the file unchanged, with its
 * types.
 */
import { parseSync } from 'oxc-parser'
import { type Node, walk } from '../analysis/syntax.ts'

interface ModuleReference {
  /** The range of the `new URL(…)` in the text. */
  readonly start: number
  readonly end: number
  /** As written: relative to the module. */
  readonly specifier: string
  /** True for the argument of `new Worker(…)`. */
  readonly isWorker: boolean
}

/** A text that does not match contains no reference. */
export const referenceText: RegExp = /\bnew\s+URL\b[\s\S]*\bimport\.meta\.url\b/

const script = /^\.\.?\/.*\.[cm]?[jt]sx?$/

/**
 * The references of a module, in source order. In a module that imports heddle: all that name a script. In
 * any other: only arguments of a method `import`. `new Worker(new URL(…))` is left to the bundler, except in
 * heddle itself (`own`).
 */
export function moduleReferences(source: string, file: string, own: boolean): ModuleReference[] {
  if (!referenceText.test(source)) return []
  const { program, module, errors } = parseSync(file, source)
  // The bundler reports the error.
  if (errors.some(({ severity }) => (severity as string) === 'Error')) return []
  const usesHeddle =
    own || module.staticImports.some(({ moduleRequest: { value } }) => /^heddle(?:\/|$)/.test(value))
  const found: ModuleReference[] = []
  const parents = new Map<Node, Node>()
  walk(program as unknown as Node, node => {
    for (const part of [node.callee, node.object, ...(node.arguments ?? [])]) {
      if (part !== null && typeof part === 'object') parents.set(part as Node, node)
    }
    const specifier = urlSpecifier(node)
    if (specifier === null || !script.test(specifier)) return
    const { start, end } = node
    const user = userOf(node, parents)
    if (user === 'worker' ? own : user === 'import' || (user === 'other' && usesHeddle)) {
      found.push({ start, end, specifier, isWorker: user === 'worker' })
    }
  })
  return found
}

/** The specifier in `new URL('specifier', import.meta.url)`, else null. */
function urlSpecifier({ type, callee, arguments: given }: Node): string | null {
  if (type !== 'NewExpression' || callee.type !== 'Identifier' || callee.name !== 'URL') return null
  const [text, base] = given as (Node | undefined)[]
  if (text?.type !== 'Literal' || typeof text.value !== 'string' || given.length !== 2) return null
  const isHere =
    base?.type === 'MemberExpression' &&
    base.object.type === 'MetaProperty' &&
    base.object.meta.name === 'import' &&
    base.property.name === 'url'
  return isHere ? text.value : null
}

/** The use of the URL. Worklets and service workers are neither modules of tasks nor heddle's workers. */
function userOf(node: Node, parents: ReadonlyMap<Node, Node>): 'worker' | 'import' | 'worklet' | 'other' {
  let user = parents.get(node)
  if (user?.type === 'MemberExpression') user = parents.get(user)
  const callee = user?.callee as Node | undefined
  if (user === undefined || callee === undefined) return 'other'
  const name: unknown = callee.type === 'MemberExpression' ? callee.property.name : callee.name
  if (user.type === 'NewExpression') return String(name).endsWith('Worker') ? 'worker' : 'other'
  if (name === 'import') return 'import'
  return name === 'addModule' || name === 'register' ? 'worklet' : 'other'
}
