import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { preemptEverywhere } from '../test/compiler/differential/drive.ts'
import { compiled, plain } from '../test/compiler/differential/programs.ts'
import { calls, loops } from './compiler.ts'

const programs = [...loops, ...calls, 'documents'].flatMap(name =>
  (['frames', 'generator'] as const).map(lowering => ({ name, lowering })),
)

// A constructor that stays plain has no safepoint: `new` cannot call a generator.
test.each([...programs, { name: 'decomposition', lowering: 'frames' as const }])(
  '$name has the same result when it is preempted at every safepoint, by $lowering',
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
