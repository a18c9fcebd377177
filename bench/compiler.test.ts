import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { preemptEverywhere } from '../src/compiler/differential/drive.ts'
import { compiled, plain } from '../src/compiler/differential/programs.ts'
import { calls, loops } from './compiler.ts'

test.each([...loops, ...calls])('%s gives the same as a twin that is preempted at every safepoint', name => {
  const file = `${name}.ts`
  const source = readFileSync(new URL(`./programs/${file}`, import.meta.url), 'utf8')
  const { run, small } = plain(source, file)
  const { value, preemptions } = preemptEverywhere(compiled(source, file, { strip: 4 })['run'], [small])
  expect(value).toBe(run(small))
  expect(preemptions).toBeGreaterThan(0)
})
