import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { transformSync } from 'esbuild'

/**
 * A cell of the matrix: a small project with heddle from the packed tarball, built with the tools that it
 * names, and run in its runtime. All cells run one program (fixtures/program), which reports its results.
 */
export interface Cell {
  readonly name: string
  /** Part of `npm test`. */
  readonly quick?: boolean
  /** Writes the project into a folder inside the one with the packages. */
  files(): Readonly<Record<string, string>>
  /** Builds and runs the project. Returns the program's report; throws an error when something fails. */
  run(project: string, tools: Tools): Promise<string>
}

/** The tools for cells. */
export interface Tools {
  /** Runs a command in the project; throws its output when it fails. */
  command(project: string, file: string, args: readonly string[]): Promise<string>
  /** The path of a Node by its major version. */
  node(major: number): string
  /** The path of an executable file of an installed package. */
  bin(name: string): string
  /** Opens a page in a browser and waits for its report. */
  page(where: Where, browser?: 'chromium' | 'firefox'): Promise<string>
}

/** A page: of a folder that is served, or of the project's own server. */
export type Where =
  | {
      readonly folder: string
      readonly path?: string
      readonly headers?: Readonly<Record<string, string>>
    }
  | { readonly server: readonly string[]; readonly project: string }

const program = join(import.meta.dirname, 'fixtures', 'program')

/** The program, in the language and module system of the cell. */
export function programFiles(form: 'typescript' | 'esm' | 'commonjs'): Record<string, string> {
  return Object.fromEntries(
    readdirSync(program).map(name => {
      const text = readFileSync(join(program, name), 'utf8')
      return form === 'typescript'
        ? [`src/${name}`, text]
        : [`src/${name.replace('.ts', '.js')}`, javascript(text, form)]
    }),
  )
}

function javascript(text: string, form: 'esm' | 'commonjs'): string {
  const named = text.replaceAll(/(['"]\.\/\w+)\.ts(['"])/g, '$1.js$2')
  const { code } = transformSync(named, {
    loader: 'ts',
    format: form === 'esm' ? 'esm' : 'cjs',
    target: 'es2022',
    ...(form === 'commonjs' && {
      define: { 'import.meta.url': '__address' },
      banner: 'const __address = require("node:url").pathToFileURL(__filename).href;',
    }),
  })
  return code
}

/** Writes the project from scratch. */
export function makeProject(cell: Cell, project: string): void {
  rmSync(project, { recursive: true, force: true })
  for (const [name, text] of Object.entries(cell.files())) {
    mkdirSync(dirname(join(project, name)), { recursive: true })
    writeFileSync(join(project, name), text)
  }
}

/** A program that ends well prints its results and the expected results, as one line of JSON. */
export function checkSaid(said: string): string | undefined {
  const line =
    said
      .trim()
      .split('\n')
      .findLast(text => text.startsWith('{')) ?? ''
  let told: { said?: unknown; expected?: unknown; failed?: string }
  try {
    told = JSON.parse(line) as typeof told
  } catch {
    return `the program did not say what it found:\n${said}`
  }
  if (told.failed !== undefined) return told.failed
  const [found, wanted] = [JSON.stringify(told.said, null, 1), JSON.stringify(told.expected, null, 1)]
  return found === wanted ? undefined : `found ${found}\nexpected ${wanted}`
}

/** Copies the output of a build into a folder for a page, with a page that loads it. */
export function servePage(project: string, script: string): { folder: string } {
  const folder = join(project, 'site')
  rmSync(folder, { recursive: true, force: true })
  cpSync(join(project, 'dist'), folder, { recursive: true })
  const type = script.endsWith('.mjs') || script.endsWith('?module') ? ' type="module"' : ''
  const source = script.replace('?module', '')
  writeFileSync(
    join(folder, 'index.html'),
    `<!doctype html><link rel="icon" href="data:,"><body></body><script${type} src="./${source}"></script>`,
  )
  return { folder }
}
