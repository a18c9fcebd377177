import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { preemptEverywhere } from '../src/compiler/differential/drive.ts'
import { compiled, plain } from '../src/compiler/differential/programs.ts'

const folder = fileURLToPath(new URL('./programs/', import.meta.url))

test.each(readdirSync(folder))('%s gives the same as a twin that is preempted at every safepoint', file => {
  const source = readFileSync(`${folder}${file}`, 'utf8')
  const { run, small } = plain(source, file)
  const { value, preemptions } = preemptEverywhere(compiled(source, file, { strip: 4 })['run'], [small])
  expect(value).toBe(run(small))
  expect(preemptions).toBeGreaterThan(0)
})
