/**
 * Writes docs/api: a page for each entry of the package, from its published types (run `npm run build`
 * first).
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { type Comment, parseSync, type Statement } from 'oxc-parser'

const root = resolve(import.meta.dirname, '..')
const out = join(root, 'docs/api')

interface Declaration {
  readonly name: string
  readonly comment: string
  readonly code: string
}

interface Module {
  readonly declared: Map<string, Declaration>
  /** Exported name -> its file and its name in that file. */
  readonly passedOn: Map<string, { from: string; name: string }>
  readonly stars: string[]
  /** Exported name -> its local name. */
  readonly exported: Map<string, string>
}

const modules = new Map<string, Module>()

function load(file: string): Module {
  const known = modules.get(file)
  if (known !== undefined) return known
  const source = readFileSync(file, 'utf8')
  const { program, comments } = parseSync(file, source)
  const made: Module = { declared: new Map(), passedOn: new Map(), stars: [], exported: new Map() }
  modules.set(file, made)
  const imported = new Map<string, { from: string; name: string }>()
  for (const statement of program.body) read(statement, { file, source, comments, made, imported })
  return made
}

interface Reading {
  readonly file: string
  readonly source: string
  readonly comments: readonly Comment[]
  readonly made: Module
  readonly imported: Map<string, { from: string; name: string }>
}

/** `./x.js` of a declaration file is `./x.d.ts`. */
function target(file: string, specifier: string): string {
  return resolve(dirname(file), specifier.replace(/\.(js|ts)$/, '.d.ts'))
}

const text = (node: unknown): string => {
  const named = node as { name?: string; value?: string }
  return named.name ?? String(named.value)
}

function read(statement: Statement, reading: Reading): void {
  const { file, made, imported } = reading
  if (statement.type === 'ImportDeclaration') {
    for (const one of statement.specifiers ?? []) {
      const name = one.type === 'ImportSpecifier' ? text(one.imported) : 'default'
      imported.set(one.local.name, { from: target(file, statement.source.value), name })
    }
  } else if (statement.type === 'ExportAllDeclaration') {
    made.stars.push(target(file, statement.source.value))
  } else if (statement.type === 'ExportNamedDeclaration') {
    if (statement.declaration !== null) {
      for (const name of declare(statement.declaration as Statement, statement, reading))
        made.exported.set(name, name)
    }
    for (const one of statement.specifiers) {
      const own = text(one.local)
      const seen = text(one.exported)
      if (statement.source !== null)
        made.passedOn.set(seen, { from: target(file, statement.source.value), name: own })
      else if (imported.has(own)) made.passedOn.set(seen, imported.get(own)!)
      else made.exported.set(seen, own)
    }
  } else {
    declare(statement, statement, reading)
  }
}

function declare(node: Statement, whole: Statement, { source, comments, made }: Reading): string[] {
  const names =
    node.type === 'VariableDeclaration'
      ? node.declarations.map(({ id }) => text(id))
      : 'id' in node && node.id !== null
        ? [text(node.id)]
        : []
  const before = comments.findLast(
    ({ end }) => end <= whole.start && source.slice(end, whole.start).trim() === '',
  )
  const comment = before?.type === 'Block' && before.value.startsWith('*') ? clean(before.value) : ''
  const code = strip(source.slice(node.start, node.end))
  for (const name of names) {
    const old = made.declared.get(name)
    made.declared.set(name, {
      name,
      comment: comment || (old?.comment ?? ''),
      code: old === undefined ? code : `${old.code}\n${code}`,
    })
  }
  return names
}

function clean(comment: string): string {
  return comment
    .split('\n')
    .map(line => line.replace(/^\s*\* ?/, ''))
    .join('\n')
    .trim()
}

/** Removes private members and those marked @internal. */
function strip(code: string): string {
  return code
    .replace(/^declare /, '')
    .replaceAll(/^\s*\/\*\*[^]*?@internal[^]*?\*\/\s*\n(?:[^\n]*\n)?/gm, '')
    .replaceAll(/^\s*private .*$\n?/gm, '')
    .trim()
}

/** The exports of a module, with its re-exports. */
function exportsOf(file: string, seen = new Set<string>()): Declaration[] {
  if (seen.has(file)) return []
  seen.add(file)
  const { declared, passedOn, stars, exported } = load(file)
  const found: Declaration[] = []
  for (const [name, own] of exported) {
    const declaration = declared.get(own)
    if (declaration !== undefined) found.push({ ...declaration, name })
  }
  for (const [name, { from, name: own }] of passedOn) {
    const declaration = find(from, own)
    if (declaration !== undefined) found.push({ ...declaration, name })
  }
  for (const star of stars) found.push(...exportsOf(star, seen))
  return found
}

function find(file: string, name: string): Declaration | undefined {
  const { declared, passedOn, stars, exported } = load(file)
  const own = exported.get(name)
  if (own !== undefined) return declared.get(own)
  const passed = passedOn.get(name)
  if (passed !== undefined) return find(passed.from, passed.name)
  for (const star of stars) {
    const found = find(star, name)
    if (found !== undefined) return found
  }
  return undefined
}

const { exports: entries } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  exports: Record<string, { types: string } | string>
}
rmSync(out, { recursive: true, force: true })
mkdirSync(out, { recursive: true })
const index: string[] = [
  '# Reference',
  '',
  'Generated from the published types of the package.',
  '',
  '| entry | exports |',
  '| --- | --- |',
]
for (const [entry, where] of Object.entries(entries)) {
  if (typeof where === 'string') continue
  const name = entry.replace('.', 'heddle')
  const page = entry === '.' ? 'heddle' : entry.slice(2).replaceAll('/', '-')
  const declarations = exportsOf(join(root, where.types)).sort((a, b) => a.name.localeCompare(b.name))
  if (declarations.length === 0) continue
  index.push(`| [\`${name}\`](./${page}.md) | ${declarations.map(one => `\`${one.name}\``).join(', ')} |`)
  const sections = declarations.map(({ name: title, comment, code }) =>
    [`## ${title}`, ...(comment === '' ? [] : [escape(comment)]), `\`\`\`typescript\n${code}\n\`\`\``].join(
      '\n\n',
    ),
  )
  writeFileSync(join(out, `${page}.md`), `# ${name}\n\n${sections.join('\n\n')}\n`)
}
writeFileSync(join(out, 'index.md'), `${index.join('\n')}\n`)
console.log(`docs/api: ${modules.size} modules read`)

/** Escapes text in comments that looks like HTML. */
function escape(comment: string): string {
  return comment
    .split(/(`[^`]*`)/)
    .map(part =>
      part.startsWith('`') ? part : part.replaceAll('<', '&lt;').replaceAll('{{', '&#123;&#123;'),
    )
    .join('')
}
