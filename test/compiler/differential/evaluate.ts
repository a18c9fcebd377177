import { stripTypeScriptTypes } from 'node:module'
import { MagicString } from 'magic-string'
import { parseSync } from 'oxc-parser'
import { type Instantiate, instantiatorOf, type Namespace } from './instantiate.ts'

export type { Namespace } from './instantiate.ts'

/**
 * Evaluates an ES module's text in this realm, with its imports from `modules` by specifier. Each call makes
 * a fresh instance. A real `import()` cannot do that thousands of times, nor use the instance of the
 * coroutine runtime that the test drives.
 */
export function evaluateModule(source: string, file: string, modules: Record<string, Namespace>): Namespace {
  let instantiate = instantiators.get(source)
  if (instantiate === undefined) {
    instantiate = instantiatorOf({ kind: 'module', file, body: moduleBody(source, file) })
    if (instantiators.size > 100) instantiators.clear()
    instantiators.set(source, instantiate)
  }
  return instantiate(modules)
}

const instantiators = new Map<string, Instantiate>()

/** The module as the body of a function that takes its imports and returns its exports. */
export function moduleBody(source: string, file: string): string {
  const stripped = /\.[cm]?tsx?$/.test(file) ? stripTypeScriptTypes(source) : source
  // The body of a function has no address. Modules that can move register theirs.
  const javascript = stripped.replaceAll('import.meta.url', `__modules['url']`)
  const { program, errors } = parseSync(file.replace(/\.([cm]?)tsx?$/, '.$1js'), javascript, {
    sourceType: 'module',
    lang: 'js',
  })
  if (errors.length > 0)
    throw new SyntaxError(`${file}: ${errors[0]!.message}\n${errors[0]!.codeframe ?? ''}`)

  const text = new MagicString(javascript)
  const exported: [name: string, local: string][] = []
  const forwarded: string[] = []
  for (const node of program.body) {
    switch (node.type) {
      case 'ImportDeclaration': {
        const from = `__modules[${JSON.stringify(node.source.value)}]`
        const bindings = node.specifiers.map(specifier => {
          const local = specifier.local.name
          if (specifier.type === 'ImportNamespaceSpecifier') return `${local} = ${from}`
          const name =
            specifier.type === 'ImportDefaultSpecifier' ? 'default' : moduleName(specifier.imported)
          return `${local} = ${from}[${JSON.stringify(name)}]`
        })
        text.overwrite(node.start, node.end, bindings.length > 0 ? `const ${bindings.join(', ')};` : ';')
        break
      }
      case 'ExportNamedDeclaration': {
        if (node.source !== null) {
          const from = `__modules[${JSON.stringify(node.source.value)}]`
          for (const specifier of node.specifiers)
            exported.push([
              moduleName(specifier.exported),
              `${from}[${JSON.stringify(moduleName(specifier.local))}]`,
            ])
          text.overwrite(node.start, node.end, ';')
        } else if (node.declaration === null) {
          for (const specifier of node.specifiers)
            exported.push([moduleName(specifier.exported), moduleName(specifier.local)])
          text.overwrite(node.start, node.end, ';')
        } else {
          const { declaration } = node
          text.remove(node.start, declaration.start)
          if (declaration.type === 'VariableDeclaration') {
            for (const { id } of declaration.declarations) {
              if (id.type !== 'Identifier')
                throw new Error(`${file}: destructured exports are not evaluated here`)
              exported.push([id.name, id.name])
            }
          } else if ('id' in declaration && declaration.id?.type === 'Identifier') {
            exported.push([declaration.id.name, declaration.id.name])
          }
        }
        break
      }
      case 'ExportAllDeclaration': {
        const from = `__modules[${JSON.stringify(node.source.value)}]`
        if (node.exported !== null) exported.push([moduleName(node.exported), from])
        else forwarded.push(from)
        text.overwrite(node.start, node.end, ';')
        break
      }
      case 'ExportDefaultDeclaration': {
        const { declaration } = node
        if ('id' in declaration && declaration.id?.type === 'Identifier') {
          text.remove(node.start, declaration.start)
          exported.push(['default', declaration.id.name])
        } else {
          text.overwrite(node.start, declaration.start, 'const __default = ')
          exported.push(['default', '__default'])
        }
        break
      }
      default:
    }
  }
  const getters = exported.map(([name, local]) => `get ${JSON.stringify(name)}() { return ${local} }`)
  const all = forwarded.map(from => `...${from}, `).join('')
  return `'use strict';\nconst __exports = { ${all}${getters.join(', ')} };\n${text}\n;return __exports`
}

/** Evaluates a CommonJS module's text, sloppy by default, with `require` from `modules`. */
export function evaluateScript(source: string, file: string, modules: Record<string, Namespace>): Namespace {
  return instantiatorOf({ kind: 'script', file, body: source })(modules)
}

function moduleName(node: { type: string; name?: string; value?: string }): string {
  return node.type === 'Literal' ? node.value! : node.name!
}
