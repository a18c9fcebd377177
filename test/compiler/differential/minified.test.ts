import { transformSync } from 'esbuild'
import { stripTypeScriptTypes } from 'node:module'
import { describe, expect, test } from 'vitest'
import { type Program, runPlain, runTwin } from './drive.ts'
import { compiled, plain, programFiles, readProgram } from './programs.ts'

/** The programs as a minifier leaves them: brackets separate words, and no spaces. Null if it refuses. */
function minified(file: string): string | null {
  const source = readProgram(file)
  try {
    const text = file.endsWith('.ts') ? stripTypeScriptTypes(source) : source
    return transformSync(text, { minifyWhitespace: true, target: 'esnext', logLevel: 'silent' }).code
  } catch {
    return null
  }
}

const texts = programFiles().flatMap(file => {
  const text = minified(file)
  return text === null ? [] : [{ file: file.replace(/\.ts$/, '.js'), text }]
})

describe.each(['frames', 'generator'] as const)('minified, made resumable by %s:', lowering => {
  test.each(texts)('the programs of $file run as they are written', async ({ file, text }) => {
    // With and without a map, the text is put together in different ways.
    const options = { lowering, strip: 1, whole: true, sourcemap: lowering === 'frames' }
    for (const [name, program] of Object.entries(plain(text, file))) {
      if (typeof program !== 'function') continue
      const expected = await runPlain(plain(text, file)[name] as Program)
      const { preemptions: _, ...outcome } = await runTwin(
        compiled(text, file, options)[name] as Program,
        true,
      )
      expect(outcome, name).toEqual(expected)
    }
  })
})

test('the minifier takes nearly all programs', () => {
  expect(texts.length).toBeGreaterThan(programFiles().length - 5)
})
