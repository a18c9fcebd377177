import { spawn } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'

const root = join(import.meta.dirname, '../..')
const folder = mkdtempSync(join(tmpdir(), 'heddle-broken-payload-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

interface Mistake {
  readonly what: string
  readonly file: string
  readonly right: string
  readonly wrong: string
}

/** Each mistake moves one step of the exchange. The check must find it. */
const mistakes: readonly Mistake[] = [
  {
    what: 'a block that is published before the record has it',
    file: 'payload/exchange.ts',
    right: 'Atomics.store(thread.i32, at, word) // (A)\n  if (word > 0) heap.publish(word) // (B)',
    wrong: 'if (word > 0) heap.publish(word)\n  Atomics.store(thread.i32, at, word)',
  },
  {
    what: 'a record that is cleared before the thread has the block',
    file: 'payload/exchange.ts',
    right: 'if (word > 0) heap.claim(thread, word) // (C)\n  Atomics.store(thread.i32, at, 0) // (D)',
    wrong: 'Atomics.store(thread.i32, at, 0)\n  if (word > 0) heap.claim(thread, word)',
  },
  {
    what: 'a recovery that does not read the records',
    file: 'payload/codec.ts',
    right: 'return this.heap.repair(this.thread, dead, records)',
    wrong: 'return this.heap.repair(this.thread, dead, () => void records)',
  },
  {
    what: 'a block that loses its owner before it is free',
    file: 'arena/memory/heap.ts',
    right:
      /i32\[block \+ SIZE\] = size \/\/ free from here on.*\n {4}Atomics\.store\(i32, block \+ OWNER, 0\)/
        .source,
    wrong: 'Atomics.store(i32, block + OWNER, 0)\n    i32[block + SIZE] = size',
  },
]

/**
 * Runs the check of the exchange on a copy of its sources with the mistake in it. Returns the kinds of
 * failure.
 */
function kindsFound({ file, right, wrong }: Mistake, copy: string): Promise<string[]> {
  mkdirSync(join(copy, 'src'), { recursive: true })
  for (const part of ['arena', 'machine', 'payload']) {
    cpSync(join(root, 'src', part), join(copy, 'src', part), { recursive: true })
  }
  symlinkSync(join(root, 'src', 'checker'), join(copy, 'src', 'checker'))
  writeFileSync(join(copy, 'package.json'), '{ "type": "module" }')
  const path = join(copy, 'src', file)
  const source = readFileSync(path, 'utf8')
  const changed = source.includes(right)
    ? source.replace(right, wrong)
    : source.replace(new RegExp(right), wrong)
  expect(changed, 'the source contains the line to change').not.toBe(source)
  writeFileSync(path, changed)
  const check = join(copy, 'src', 'payload', 'exchange.check.ts')
  const child = spawn(
    process.execPath,
    [join(root, 'src', 'cli', 'main.ts'), 'check', check, '--json', '--bail'],
    {
      cwd: copy,
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  let said = ''
  child.stdout.setEncoding('utf8')
  child.stdout.on('data', (part: string) => {
    said += part
  })
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', code => {
      if (said === '') return reject(new Error(`the check printed nothing and exited with code ${code}`))
      const results = said
        .trim()
        .split('\n')
        .map(line => JSON.parse(line) as { failure: { kind: string } | null })
      resolve(results.flatMap(({ failure }) => (failure === null ? [] : [failure.kind])))
    })
  })
}

describe('the check of the exchange finds', () => {
  mistakes.forEach((mistake, index) => {
    test(mistake.what, async () => {
      expect(await kindsFound(mistake, join(folder, String(index)))).toContain('assertion')
    })
  })
})
