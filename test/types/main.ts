import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/**
 * The declarations of the installed package, checked with the strictest settings and without `skipLibCheck`,
 * by two TypeScripts, under every way to resolve a module. Then the snippets of the documentation, with the
 * settings of docs/start.md and the stricter ones of `tsc --init`: node test/types/main.ts <folder in which
 * heddle is installed>
 */
const root = join(import.meta.dirname, '..', '..')
const home = process.argv[2]!
const { exports } = JSON.parse(
  readFileSync(join(home, 'node_modules', 'heddle', 'package.json'), 'utf8'),
) as { exports: Record<string, unknown> }
const names = Object.keys(exports).filter(name => name !== './package.json')

const compilers = [
  join(root, 'test', 'matrix', 'node_modules', 'typescript5', 'bin', 'tsc'),
  join(root, 'node_modules', 'typescript', 'bin', 'tsc'),
]
const resolutions = [
  ['node16', 'node16'],
  ['nodenext', 'nodenext'],
  ['bundler', 'esnext'],
]

/** Entries whose declarations name types of another package: the one that their program has anyway. */
const ofTools = /^\.\/(vite|vitest|rollup|rolldown|webpack|rspack|esbuild)$/
/** Entries for Node alone: their declarations name types of @types/node. */
const ofNode = /^\.\/(machine\/node|piscina|workerpool|trace\/file)$/
/** Entries for pages alone: their declarations name types of the library `dom`. */
const ofPages = /^\.\/(machine\/web|view)$/

interface Program {
  readonly what: string
  readonly entries: readonly string[]
  readonly lib: readonly string[]
  readonly types: readonly string[]
}

const plain = names.filter(name => !ofTools.test(name))
const programs: readonly Program[] = [
  {
    what: 'a program of Node without the library dom',
    entries: plain.filter(name => !ofPages.test(name)),
    lib: ['es2022'],
    types: ['node'],
  },
  {
    what: 'a page without @types/node',
    entries: plain.filter(name => !ofNode.test(name)),
    lib: ['es2022', 'dom'],
    types: [],
  },
]

const folder = join(home, 'types')
rmSync(folder, { recursive: true, force: true })
mkdirSync(join(folder, 'node_modules', '@types'), { recursive: true })
// Only what a program would install: the types of Node, and no optional peer.
for (const name of ['@types/node', 'undici-types'])
  symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name))
writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }')

const wrong: string[] = []
for (const compiler of compilers) {
  const { version } = JSON.parse(readFileSync(join(dirname(compiler), '..', 'package.json'), 'utf8')) as {
    version: string
  }
  for (const { what, entries, lib, types } of programs) {
    writeFileSync(
      join(folder, 'all.ts'),
      entries.map((name, n) => `export * as entry${n} from 'heddle${name.slice(1)}'\n`).join(''),
    )
    for (const [moduleResolution, module] of resolutions) {
      writeFileSync(
        join(folder, 'tsconfig.json'),
        JSON.stringify({
          compilerOptions: {
            strict: true,
            noEmit: true,
            skipLibCheck: false,
            exactOptionalPropertyTypes: true,
            noUncheckedIndexedAccess: true,
            isolatedModules: true,
            verbatimModuleSyntax: true,
            target: 'es2022',
            moduleResolution,
            module,
            lib,
            types,
          },
          files: ['all.ts'],
        }),
      )
      const { status, stdout, stderr } = spawnSync(process.execPath, [compiler, '-p', folder], {
        encoding: 'utf8',
      })
      const name = `TypeScript ${version}, ${moduleResolution}, ${what}: ${entries.length} entries`
      console.log(`${status === 0 ? '✓' : '✗'} ${name}`)
      if (status !== 0) wrong.push(`${name}:\n${stdout}${stderr}`)
    }
  }
}
checkSnippets()
for (const text of wrong) console.log(text)
rmSync(folder, { recursive: true, force: true })
process.exitCode = wrong.length === 0 ? 0 : 1

/** The files of each page in a folder of its own, under the settings of docs/start.md. */
function checkSnippets(): void {
  const settings = /^```jsonc\n\/\/ tsconfig.json.*\n([^]*?)^```/m.exec(read('docs/start.md'))?.[1]
  if (settings === undefined) {
    wrong.push('docs/start.md: no settings for tsc in a block jsonc')
    return
  }
  const { compilerOptions } = JSON.parse(settings) as { compilerOptions: Record<string, unknown> }
  const strictest = Object.fromEntries(
    ['noUncheckedIndexedAccess', 'exactOptionalPropertyTypes', 'verbatimModuleSyntax', 'isolatedModules']
      .concat('noUncheckedSideEffectImports', 'skipLibCheck')
      .map(name => [name, true]),
  )
  const at = join(folder, 'snippets')
  for (const page of ['README.md', 'docs', 'docs/guides'].flatMap(pagesIn)) {
    const texts = [...read(page).matchAll(/^```ts\n(\/\/ ([\w.-]+\.ts)\b[^]*?)^```/gm)]
    if (texts.length > 0) mkdirSync(join(at, page.replaceAll(/\W/g, '-')), { recursive: true })
    for (const [, text, name] of texts) writeFileSync(join(at, page.replaceAll(/\W/g, '-'), name!), text!)
  }
  for (const name of ['vitest', 'vite', '@vitest'])
    symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name))
  const options = { ...compilerOptions, ...strictest, moduleDetection: 'force' }
  writeFileSync(join(at, 'tsconfig.json'), JSON.stringify({ compilerOptions: options }))
  for (const compiler of compilers) {
    const { status, stdout, stderr } = spawnSync(process.execPath, [compiler, '-p', at], { encoding: 'utf8' })
    const name = `snippets of the documentation, ${compiler.includes('typescript5') ? 'TypeScript 5' : 'TypeScript 7'}`
    console.log(`${status === 0 ? '✓' : '✗'} ${name}`)
    if (status !== 0) wrong.push(`${name}:\n${stdout}${stderr}`)
  }
}

function read(page: string): string {
  return readFileSync(join(root, page), 'utf8')
}

function pagesIn(path: string): string[] {
  if (path.endsWith('.md')) return [path]
  return readdirSync(join(root, path))
    .filter(name => name.endsWith('.md'))
    .map(name => `${path}/${name}`)
}
