import * as fc from 'fast-check'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type Program, runPlain, runTwin } from './drive.ts'
import { grammarProgram, productions } from './grammar.ts'
import { compiled, plain } from './programs.ts'

const runs = Number(process.env['HEDDLE_RANDOM_GRAMMAR'] ?? 110)
// The same programs each time; random ones if their number is given.
const isLong = process.env['HEDDLE_RANDOM_GRAMMAR'] !== undefined
const seed =
  process.env['HEDDLE_SEED'] === undefined ? (isLong ? undefined : 3) : Number(process.env['HEDDLE_SEED'])

// The text of a compiled function is not that of the source, and a program may read it.
beforeAll(() => void vi.spyOn(Function.prototype, 'toString').mockReturnValue('function () {}'))
afterAll(() => void vi.restoreAllMocks())

test('random programs over the whole grammar behave the same in every mode, and use every production', {
  timeout: 3_600_000,
}, async () => {
  const used = new Map<string, number>(productions().map(name => [name, 0]))
  let preemptions = 0
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.nat(0xffff), { minLength: 150, maxLength: 700, size: 'max' }),
      async tape => {
        const { source, used: names } = grammarProgram(tape)
        const file = 'grammar.cjs'
        try {
          const expected = await runPlain(plain(source, file)['main'] as Program)
          for (const name of names) used.set(name, (used.get(name) ?? 0) + 1)
          for (const lowering of ['frames', 'generator'] as const) {
            const options = { lowering, strip: [1, 3, 512][tape.length % 3]!, sourcemap: false }
            const main = (): Program => compiled(source, file, options)['main'] as Program
            expect(await runPlain(main()), `${lowering}, called plainly`).toEqual(expected)
            for (const every of [false, true]) {
              const { preemptions: count, ...outcome } = await runTwin(main(), every)
              preemptions += count
              expect(outcome, `${lowering}, ${every ? 'preempted' : 'undisturbed'}`).toEqual(expected)
            }
          }
        } catch (error) {
          throw new Error(`this program runs differently when it is compiled:\n${source}`, { cause: error })
        }
      },
    ),
    // A failure shows its seed and path; HEDDLE_SEED repeats the run.
    { numRuns: runs, ...(seed === undefined ? {} : { seed }) },
  )
  expect(preemptions).toBeGreaterThan(runs)
  const counts = [...used].sort((left, right) => left[1] - right[1])
  if (process.env['HEDDLE_PRODUCTIONS'] !== undefined)
    console.log(counts.map(([name, count]) => `${count} ${name}`).join('\n'))
  // More than one in a hundred programs produces each, so that this does not fail by chance.
  expect(counts.filter(([, count]) => count === 0).map(([name]) => name)).toEqual([])
})
