import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { preemptEverywhere } from '../src/compiler/differential/drive.ts'
import { compiled, plain } from '../src/compiler/differential/programs.ts'
import { calls, loops } from './compiler.ts'

const programs = [...loops, ...calls].flatMap(name =>
  (['frames', 'generator'] as const).map(lowering => ({ name, lowering })),
)

test.each(programs)(
  '$name gives the same, preempted at every safepoint, by $lowering',
  ({ name, lowering }) => {
    const file = `${name}.ts`
    const source = readFileSync(new URL(`./programs/${file}`, import.meta.url), 'utf8')
    const { run, small } = plain(source, file)
    const { value, preemptions } = preemptEverywhere(compiled(source, file, { lowering, strip: 4 })['run'], [
      small,
    ])
    expect(value).toBe(run(small))
    expect(preemptions).toBeGreaterThan(0)
  },
)
