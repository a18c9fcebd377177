import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, posix, relative, sep } from 'node:path'
import { parseSync } from 'oxc-parser'
import { distFiles } from './distfiles.ts'

/** A module's imports, and whether the module exists only for its effect. Paths have no extension. */
interface ModuleShape {
  readonly name: string
  /** Relative imports; `bare` are imports without a name: `import './x'`. */
  readonly imports: readonly string[]
  readonly bare: readonly string[]
  /** The module exports no value, but has statements. */
  readonly onlyActs: boolean
}

interface Statement {
  readonly type: string
  readonly specifiers?: readonly unknown[]
  readonly source?: { readonly value: string } | null
  readonly importKind?: string
  readonly exportKind?: string
}

function shapeOf(folder: string, file: string): ModuleShape {
  const { program, errors } = parseSync(file, readFileSync(join(folder, file), 'utf8'))
  if (errors.length > 0) throw new Error(`${file} does not parse: ${errors[0]!.message}`)
  const statements = (program.body as never as Statement[]).filter(isValue)
  const name = withoutExtension(file)
  const target = ({ source }: Statement): string => withoutExtension(posix.join(dirname(name), source!.value))
  const imports = statements.filter(
    ({ type, source }) => type === 'ImportDeclaration' && source!.value.startsWith('.'),
  )
  return {
    name,
    imports: imports.map(target),
    bare: imports.filter(({ specifiers }) => specifiers!.length === 0).map(target),
    onlyActs:
      !statements.some(({ type }) => type.startsWith('Export')) &&
      statements.some(({ type }) => type !== 'ImportDeclaration'),
  }
}

/** Not a type: `import type`, `interface`, `export type`. */
function isValue({ type, importKind, exportKind }: Statement): boolean {
  return importKind !== 'type' && exportKind !== 'type' && !type.startsWith('TS')
}

const withoutExtension = (file: string): string => file.replace(/\.[jt]s$/, '')

/** Every module of the source that is built. */
function shapes(root: string): ModuleShape[] {
  const folder = join(root, 'src')
  return filesBelow(folder, '.ts')
    .filter(file => !/\.(test|check)\.ts$/.test(file))
    .map(file => shapeOf(folder, file))
}

/**
 * The modules that have an effect when they are loaded. Two rules find them, so the list in package.json is
 * derived:
 *
 *   [1] a module that exports no value exists for its effect
 *   [2] `import './x.ts'`, without a name, needs the effect of x: a bundler must keep x and the importer
 */
export function effectModules(root: string): string[] {
  const found = new Set<string>()
  for (const { name, bare, onlyActs } of shapes(root)) {
    if (onlyActs || bare.length > 0) found.add(name)
    for (const target of bare) found.add(target)
  }
  return [...found].sort()
}

/**
 * What is missing in `sideEffects`, and what should not be there. Each module is listed twice: in tests,
 * bundlers see the source too.
 */
export function wrongSideEffects(root: string): string[] {
  const { sideEffects } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    sideEffects: string[]
  }
  const names = effectModules(root)
  const { filesOf } = distFiles(root, names)
  const built = new Set(names.flatMap(name => filesOf(`${name}.ts`)))
  const wanted = [
    ...[...built].sort().map(file => `./dist/${file}`),
    ...names.map(name => `./src/${name}.ts`),
  ]
  return [
    ...wanted.filter(path => !sideEffects.includes(path)).map(path => `sideEffects lacks ${path}`),
    ...sideEffects
      .filter(path => !wanted.includes(path))
      .map(path => `sideEffects names ${path} without need`),
  ]
}

/** The imports for effect that are missing in the build: `dist` is the built folder. */
export function lostImports(root: string, dist: string): string[] {
  const { filesOf } = distFiles(root, effectModules(root))
  const namesOf = (name: string): string[] => filesOf(`${name}.ts`).map(withoutExtension)
  const importsOf = (name: string): readonly string[] => shapeOf(dist, `${name}.js`).imports
  return shapes(root).flatMap(({ name, bare }) =>
    namesOf(name).flatMap(file => {
      // A file that only passes the exports of a chunk on imports that chunk.
      const reached = new Set([file, ...importsOf(file), ...importsOf(file).flatMap(importsOf)])
      return bare
        .filter(target => !namesOf(target).some(other => reached.has(other)))
        .map(target => `${file}.js does not import ${target}`)
    }),
  )
}

/** Files with this ending in `folder`, as posix paths. */
function filesBelow(folder: string, ending: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile() && entry.name.endsWith(ending))
    .map(entry => relative(folder, join(entry.parentPath, entry.name)).split(sep).join('/'))
}
