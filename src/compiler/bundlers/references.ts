/**
 * Finds where a module names another by `new URL('./work.ts', import.meta.url)`: the modules that CPUs
 * import, and the entries of workers. A bundler that does not know them copies the file as it stands,
 * TypeScript and all.
 */
import { parseSync } from 'oxc-parser'
import { type Node, walk } from '../analysis/syntax.ts'

export interface ModuleReference {
  /** Where the `new URL(…)` stands in the text. */
  readonly start: number
  readonly end: number
  /** As it is written: relative to the module. */
  readonly specifier: string
  /** It is the argument of `new Worker(…)`. */
  readonly isWorker: boolean
}

/** Without these two words a text holds no reference. */
export const referenceText: RegExp = /\bnew\s+URL\b[\s\S]*\bimport\.meta\.url\b/

const script = /^\.\.?\/.*\.[cm]?[jt]sx?$/

/**
 * The references of a module, in the order of the text. In a module that imports heddle these are all that
 * name a script; in any other only what is given to a method `import`. `new Worker(new URL(…))` is the
 * bundler's own business, but in heddle itself (`own`).
 */
export function moduleReferences(source: string, file: string, own: boolean): ModuleReference[] {
  if (!referenceText.test(source)) return []
  const { program, module, errors } = parseSync(file, source)
  // The bundler says what is wrong with it.
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

/** The text in `new URL('text', import.meta.url)`; null for anything else. */
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

/**
 * What the URL is given to. A worklet or a service worker is neither a module of tasks nor a worker of
 * heddle's.
 */
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
