import { describe, expect, test } from 'vitest'
import { type Program, runPlain, runTwin } from './drive.ts'
import type { Namespace } from './evaluate.ts'
import { compiled, outputOf, plain, programFiles, readProgram } from './programs.ts'

/** A program name as a sentence: `finallyRunsOnce` reads "finally runs once". */
function sentence(name: string): string {
  return name.replace(/[A-Z]/g, letter => ` ${letter.toLowerCase()}`)
}

function programsOf(namespace: Namespace): string[] {
  return Object.keys(namespace).filter(name => typeof namespace[name] === 'function')
}

let programs = 0
let preemptions = 0

const cases = programFiles().flatMap(file =>
  (['frames', 'generator'] as const).map(lowering => ({ file, lowering })),
)

for (const { file, lowering } of cases) {
  const source = readProgram(file)
  const original = plain(source, file)

  describe(`${file.replace(/\.\w+$/, '').replaceAll('-', ' ')}, run as written and resumable, by ${lowering}`, () => {
    for (const name of programsOf(original)) {
      programs++
      test(sentence(name), async () => {
        // A fresh module for each run, so that no state survives.
        const expected = await runPlain(plain(source, file)[name] as Program)
        expect(
          await runPlain(compiled(source, file, { lowering })[name] as Program),
          'the plain form',
        ).toEqual(expected)

        const { preemptions: idle, ...undisturbed } = await runTwin(
          compiled(source, file, { lowering })[name] as Program,
          false,
        )
        expect(undisturbed, 'the twin, never preempted').toEqual(expected)
        expect(idle).toBe(0)

        // Loops without calls have a safepoint once in some hundreds of turns; here also in every turn, or
        // every third. In a package that is compiled whole, calls of brief functions are plain.
        for (const options of [{}, { strip: 3, whole: true }, { strip: 1 }]) {
          const twin = compiled(source, file, { lowering, ...options })[name] as Program
          const { preemptions: count, ...preempted } = await runTwin(twin, true)
          expect(preempted, `the twin, preempted at every safepoint, ${JSON.stringify(options)}`).toEqual(
            expected,
          )
          preemptions += count
        }
      })
    }
  })
}

test.each(programFiles())('functions of %s unwind if the option asks for it', file => {
  const { stats } = outputOf(readProgram(file), file, { lowering: 'frames' })
  const twins = stats.filter(({ form }) => form === 'twin')
  const unwinding = twins.filter(({ lowering }) => lowering === 'frames')
  // All but generators, async functions, and the few that should be generators.
  if (!/async|generators/.test(file)) expect(unwinding.length).toBeGreaterThan(twins.length / 2)
})

test('the programs are many, and they were preempted', () => {
  expect(programs).toBeGreaterThanOrEqual(250)
  expect(preemptions).toBeGreaterThan(10 * programs)
})
