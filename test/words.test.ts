import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '..')

/** Turns that are never plain English in this project, each with the words to use instead. */
const turns: readonly (readonly [turn: RegExp, instead: string])[] = [
  [/\bwhoever\b/i, 'name the actor: the holder, the waiter, the caller'],
  [/\bnobody who\b/i, 'no task that, no thread that'],
  [/\b(for|to|from|of|by) who\b/i, 'name the actor'],
  [/\bthe long way\b/i, 'the slow path'],
  [/\bmade anew\b|\banew\b/i, 'recreated, again'],
  [/\bsees? to (it|that)\b/i, 'makes sure'],
  [/\b(goes|go|comes|come) round\b/i, 'repeats, returns'],
  [/\b(in|under) (its|their) hands\b/i, 'holds, owns'],
  [/\bg(i|a)ves? way\b/i, 'yields'],
  [/\blets? (it )?go of\b|\bis let go\b/i, 'unlocks, releases'],
  [/\bis told (that|of|what|who)\b/i, 'gets, receives, is notified'],
  [/\bcannot bear\b/i, 'must not'],
  [/\ball the same\b/i, 'also, too, still'],
  [/\bundertaker\b/i, 'death watcher'],
]

/** The folders that are checked. */
const folders = [
  'README.md',
  'CONTRIBUTING.md',
  'docs',
  'src',
  'bench',
  'examples',
  'scripts',
  'test',
  'testing',
]
const skipped = /\/fixtures\/|^bench\/results\/|^docs\/api\/|^test\/words\.test\.ts$/

const files = execFileSync('git', ['ls-files', '--', ...folders], { cwd: root, encoding: 'utf8' })
  .split('\n')
  .filter(file => /\.(ts|mjs|md)$/.test(file) && !skipped.test(file))

const lines = files.flatMap(file =>
  readFileSync(join(root, file), 'utf8')
    .split('\n')
    .map((text, at) => ({ file, text, where: `${file}:${at + 1}` })),
)

test.each(turns)('no text has %s: write "%s"', (turn, _instead) => {
  expect(
    lines.filter(({ text }) => turn.test(text)).map(({ where, text }) => `${where} ${text.trim()}`),
  ).toEqual([])
})

const WIDTH = 110

test('comments and paragraphs are at most 110 columns wide', () => {
  const wide: string[] = []
  let fenced = false
  for (const { file, text, where } of lines) {
    if (file.endsWith('.md')) {
      if (text.startsWith('```')) fenced = !fenced
      // Tables, code, front matter, links and URLs cannot be wrapped; nor can tables and races in comments.
      if (fenced || /^(\||    |<!--|---|  +\w+:|  - \w+:)|https?:|\]\(/.test(text)) continue
    } else if (!/^\s*(\/\/ |\/\*|\* (?! ))/.test(text) || /https?:|oxlint/.test(text)) continue
    if (text.length > WIDTH) wide.push(`${where} has ${text.length} columns`)
  }
  expect(wide).toEqual([])
})

test('comments do not call a layer above or below another', () => {
  const found = lines.filter(({ text }) =>
    /\blayers? (above|below)\b|\b(above|below) (this|that) layer\b/i.test(text),
  )
  expect(found.map(({ where }) => where)).toEqual([])
})
