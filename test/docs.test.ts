import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { parseSync } from 'oxc-parser'
import { describe, expect, it } from 'vitest'

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

const codeBlocks = pages.flatMap(blocksOf).filter(({ language }) => language === 'ts')

/** A heading, as sites and GitHub link to it. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(/\s/g, '-')
}

describe('the documentation', () => {
  it.for(pages)('%s has no link that leads nowhere', page => {
    const text = readFileSync(join(root, page), 'utf8').replaceAll(/^```[\s\S]*?^```/gm, '')
    for (const [, target] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue
      const [path, anchor] = target.split('#')
      const file = path === '' ? join(root, page) : resolve(root, dirname(page), path)
      expect(existsSync(file), `${page} links to ${target}`).toBe(true)
      if (anchor === undefined || !file.endsWith('.md')) continue
      const headings = [...readFileSync(file, 'utf8').matchAll(/^#+ (.*)$/gm)].map(([, heading]) =>
        anchorOf(heading),
      )
      expect(headings, `${page} links to ${target}`).toContain(anchor)
    }
  })

  it('draws the layers as they are', () => {
    const drawn = [
      ...readFileSync(join(root, 'docs/concepts.md'), 'utf8').matchAll(/^ {2}([a-z]+) {2,}\S/gm),
    ].map(([, name]) => name)
    const held = /const layers = \[([^\]]*)\]/.exec(
      readFileSync(join(root, 'test/layers.test.ts'), 'utf8'),
    )![1]
    expect([...drawn, 'index.ts']).toEqual([...held.matchAll(/'([\w.]+)'/g)].map(([, name]) => name))
  })

  it('has code that parses', () => {
    for (const { page, line, code } of codeBlocks) {
      // A fragment may leave things out, and say so.
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
        // A later block of the same name is another version of it, in a folder of its own.
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
