import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { parseSync } from 'oxc-parser'
import { describe, expect, it } from 'vitest'
import { headingAnchor } from '../scripts/headinganchor.ts'
import { foldersImportedBy, layers, sourceFiles } from './sourcelayers.ts'

const root = resolve(import.meta.dirname, '..')
const pages = [
  'README.md',
  'CONTRIBUTING.md',
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter(file => file.endsWith('.md') && !file.includes('node_modules'))
    .map(file => `docs/${file}`),
]

interface Block {
  readonly page: string
  readonly line: number
  readonly language: string
  readonly code: string
}

function blocksOf(page: string): Block[] {
  const blocks: Block[] = []
  let open: { line: number; language: string; lines: string[] } | null = null
  readFileSync(join(root, page), 'utf8')
    .split('\n')
    .forEach((text, at) => {
      const fence = /^```(\w*)/.exec(text)
      if (fence === null) open?.lines.push(text)
      else if (open === null) open = { line: at + 1, language: fence[1], lines: [] }
      else {
        blocks.push({ page, line: open.line, language: open.language, code: open.lines.join('\n') })
        open = null
      }
    })
  return blocks
}

/** A page without its code and its tables of figures. */
function proseOf(page: string): string {
  return readFileSync(join(root, page), 'utf8')
    .replaceAll(/^```[\s\S]*?^```/gm, '')
    .replaceAll(/^<!-- (?:rows|targets):[\s\S]*?^<!-- end of rows -->/gm, '')
}

const codeBlocks = pages.flatMap(blocksOf).filter(({ language }) => language === 'ts')

/** Every file of the repository that is not deleted. */
function tracked(): string[] {
  return execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
  })
    .split('\n')
    .filter(file => file !== '' && existsSync(join(root, file)))
}

/** The rows of the tables of figures. */
const rows: ReadonlySet<string> = new Set(
  [...readFileSync(join(root, 'docs/figures.md'), 'utf8').matchAll(/^\| `([^`]+)` \|/gm)].map(
    ([, row]) => row,
  ),
)

describe('the documentation', () => {
  it.for(pages)('%s has no broken link', page => {
    for (const [, target] of proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue
      const [path, anchor] = target.split('#')
      const file = path === '' ? join(root, page) : resolve(root, dirname(page), path)
      expect(existsSync(file), `${page} links to ${target}`).toBe(true)
      if (anchor === undefined || !file.endsWith('.md')) continue
      const headings = [...readFileSync(file, 'utf8').matchAll(/^#+ (.*)$/gm)].map(([, heading]) =>
        headingAnchor(heading),
      )
      expect(headings, `${page} links to ${target}`).toContain(anchor)
    }
  })

  it('links from the pages of the site to its pages alone', () => {
    const outside = pages
      .filter(page => page.startsWith('docs/'))
      .flatMap(page =>
        [...proseOf(page).matchAll(/\]\(([^)\s#]+)[^)]*\)/g)]
          .map(([, target]) => target)
          .filter(target => !/^[a-z]+:/.test(target))
          .map(target => ({ page, target, file: resolve(root, dirname(page), target) })),
      )
      .filter(({ file }) => !file.startsWith(join(root, 'docs')))
      .map(({ page, target }) => `${page}: ${target}`)
    expect(outside).toEqual([])
  })

  it('names no file or folder that does not exist', () => {
    const known = new Set<string>()
    for (const file of tracked()) {
      const parts = file.split('/')
      for (let from = 0; from < parts.length; from++) {
        for (let to = from + 1; to <= parts.length; to++) {
          const path = parts.slice(from, to).join('/')
          known.add(path).add(path.replace(/(\.(test|check))?\.ts$/, ''))
        }
      }
    }
    const foreign = /^(heddle|node_modules|@\w+)\//
    const madeUp = new Set('file.ts m.ts work.ts x.ts lib package/path/in/it.js tasks/work.js'.split(' '))
    for (const page of pages.filter(own => !own.startsWith('docs/api/'))) {
      const prose = proseOf(page)
      const files = prose.matchAll(/`[^`\n]*?([\w/-][\w./-]*\.(?:ts|mjs))\b[^`\n]*`/g)
      const paths = prose.matchAll(/`((?:[\w.-]+\/)+[\w.-]*)`/g)
      for (const [, named] of [...files, ...paths]) {
        const path = named.replace(/^\.*\//, '').replace(/\/$/, '')
        if (foreign.test(path) || madeUp.has(path) || rows.has(named) || path.startsWith('set/fill')) continue
        expect(known.has(path), `${page} names ${named}`).toBe(true)
      }
    }
  })

  it('names no identifier that the source does not have', () => {
    const known = new Set(Object.getOwnPropertyNames(globalThis))
    // Of the source designs, and of other programs.
    const foreign = `preemptSigHandler pushPreempted popPreempted readyQueue sleepQueue allCoMap RunningCo
      RunningCoNull ScheduleExited LD_PRELOAD DateTimeFormat WithTimeout ResponseAborted aroundEach aroundAll
      NODE_V8_COVERAGE overallRate`
    for (const name of foreign.split(/\s+/)) known.add(name)
    for (const file of tracked().filter(name => /\.(ts|mjs|cjs|js|c)$/.test(name))) {
      const code = readFileSync(join(root, file), 'utf8')
        .replaceAll(/\/\*[\s\S]*?\*\//g, '')
        .replaceAll(/(^|\s)\/\/ .*$/gm, '')
      for (const [name] of code.matchAll(/[\w$]+/g)) known.add(name)
    }
    for (const page of pages.filter(own => !own.startsWith('docs/api/'))) {
      const own = new Set(blocksOf(page).flatMap(({ code }) => code.match(/[\w$]+/g) ?? []))
      for (const [, text] of proseOf(page).matchAll(/`([^`\n]+)`/g)) {
        for (const [name] of text.matchAll(/[A-Za-z_$][\w$]*/g)) {
          // A word in lower case may be English.
          if (!/[a-z][A-Z]|[A-Z]_[A-Z]/.test(name) || own.has(name)) continue
          expect(known.has(name), `${page} names ${name}`).toBe(true)
        }
      }
    }
  })

  it('names for each mechanism of a design a file that exists and contains the name', () => {
    const rows = [
      ...readFileSync(join(root, 'docs/designs.md'), 'utf8').matchAll(
        /^\| [^|]+ \| `([\w/.-]+)`(?: `(\w+)`)? \| [^|]+ \| ([^|]+) \|$/gm,
      ),
    ]
    expect(rows.length).toBeGreaterThan(60)
    const named = readFileSync(join(root, 'docs/designs.md'), 'utf8').match(/^\| (?!mechanism|---)/gm)
    expect(rows.length, 'every row has this form').toBe(named?.length)
    for (const [, file, name, shownBy] of rows) {
      expect(existsSync(join(root, file)), file).toBe(true)
      if (name !== undefined) {
        expect(readFileSync(join(root, file), 'utf8'), `${file} has no ${name}`).toMatch(
          new RegExp(`\\b${name}\\b`),
        )
      }
      const tests = [...shownBy.matchAll(/`([\w/.-]+\.ts)`/g)].map(([, test]) => test)
      for (const test of tests) expect(existsSync(join(root, test)), test).toBe(true)
      expect(tests.length > 0 || shownBy.includes('npm run bench'), `${file}: ${shownBy}`).toBe(true)
    }
  })

  it.for(
    'arena machine payloads scheduler coroutines futex pi handoff policies kernel sync recovery'.split(' '),
  )('says in the chapter %s what is promised, the lock order, the races and the tests', chapter => {
    const text = readFileSync(join(root, `docs/${chapter}.md`), 'utf8')
    expect(text).toMatch(/^(## |\*\*)What it promises/m)
    expect(text).toMatch(/lock order|no locks here|## Locks/i)
    expect(text, 'a race: in two columns, or a table').toMatch(/\(A\)|## .*races/i)
    expect(text).toMatch(/^## Shown by$/m)
  })

  it('names for each word of the kernel a file that has it', () => {
    const page = readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8')
    const rows = [...page.matchAll(/^\| [^|`]+ \| `(\w+)`: [^|]+ \| `([\w/.-]+)` \|$/gm)]
    expect(rows.length).toBeGreaterThan(15)
    for (const [, name, file] of rows) {
      expect(readFileSync(join(root, file), 'utf8'), `${file} has no ${name}`).toMatch(
        new RegExp(`^export .*\\b${name}\\b`, 'm'),
      )
    }
  })

  it('names no row of the figures that is not in the tables', () => {
    const parts = [...new Set([...rows].map(row => row.split('/')[0]))].join('|')
    const row = new RegExp(`\`((?:${parts})/[a-z\\d…-]+)\``, 'g')
    for (const page of pages.filter(own => !own.startsWith('docs/api/'))) {
      for (const [, named] of proseOf(page).matchAll(row)) {
        // A suite, not a row.
        if (['test', 'check'].some(suite => existsSync(join(root, `src/${named}.${suite}.ts`)))) continue
        const like = new RegExp(`^${named.replaceAll('…', '.+')}$`)
        expect(
          [...rows].some(each => like.test(each)),
          `${page} names ${named}`,
        ).toBe(true)
      }
    }
  })

  it('draws the layers and their imports correctly', () => {
    const page = readFileSync(join(root, 'docs/concepts.md'), 'utf8')
    const drawn = [...page.matchAll(/^ {2}([a-z]+) {2,}\S.*\n(?: +↑ (.*)\n)?/gm)].map(
      ([, name, from = '']): [string, string[]] => [name, from === '' ? [] : from.split(', ')],
    )
    expect([...drawn.map(([name]) => name), 'index.ts']).toEqual([...layers])
    const files = sourceFiles()
    for (const [name, from] of drawn) {
      const own = files.filter(file => file.startsWith(`${name}/`))
      const imported = new Set(own.flatMap(foldersImportedBy))
      imported.delete(name)
      expect(from, name).toEqual(layers.filter(layer => imported.has(layer)))
    }
  })

  it('has code that parses', () => {
    for (const { page, line, code } of codeBlocks) {
      // A fragment may have an ellipsis.
      const whole = code.replaceAll('…', '')
      const body = whole.replaceAll(/^(import|export) .*$/gm, '')
      // A module, some statements, or a part of an object.
      const readings = [whole, `async function* _() {\n${body}\n}`, `({\n${body}\n})`]
      const parses = readings.some(text => parseSync('block.ts', text).errors.length === 0)
      expect(parses, `${page}:${line} does not parse`).toBe(true)
    }
  })

  it('has programs that compile: every block that imports heddle, with the files beside it', () => {
    const folder = join(root, '.vitest', 'docs')
    rmSync(folder, { recursive: true, force: true })
    const written = new Set<string>()
    const wherever = new Map<string, string>()
    for (const page of pages) {
      const blocks = codeBlocks.filter(block => block.page === page)
      if (!blocks.some(({ code }) => /from 'heddle/.test(code))) continue
      const home = join(folder, page.replace('.md', ''))
      mkdirSync(home, { recursive: true })
      blocks.forEach(({ code, line }, at) => {
        const named = /^\/\/ ([\w.-]+\.ts)/.exec(code)?.[1]
        if (named === undefined && !/from 'heddle/.test(code)) return
        const file = join(home, named ?? `block${at}.ts`)
        // A later block with the same file name is another version, in its own folder.
        const place = written.has(file) ? join(home, `again${at}`, named ?? '') : file
        mkdirSync(dirname(place), { recursive: true })
        written.add(place)
        wherever.set(relative(root, place), `${page}:${line}`)
        writeFileSync(place, /^(import|export) /m.test(code) ? code : `${code}\nexport {}\n`)
      })
    }
    const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      exports: Record<string, { types: string } | string>
    }
    const paths: Record<string, string[]> = {}
    for (const [name, entry] of Object.entries(exports)) {
      if (typeof entry === 'string') continue
      paths[name.replace('.', 'heddle')] = [
        join(root, entry.types.replace('./dist', 'src').replace('.d.ts', '.ts')),
      ]
    }
    const config = {
      extends: join(root, 'tsconfig.json'),
      compilerOptions: {
        noEmit: true,
        paths,
        noUnusedLocals: false,
        noUnusedParameters: false,
        isolatedDeclarations: false,
      },
      include: ['**/*.ts'],
      exclude: [],
    }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
    const tsc = join(root, 'node_modules/.bin/tsc')
    const { stdout } = spawnSync(tsc, ['-p', folder], { encoding: 'utf8', cwd: root })
    const own = stdout.split('\n').filter(line => line.includes('.vitest/docs'))
    const said = own.map(line => line.replace(/^[^(]+/, file => `${wherever.get(file) ?? file} as ${file}`))
    expect(said.join('\n')).toBe('')
    expect(written.size).toBeGreaterThan(15)
  })
})
