import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Program, runPlain, runTwin } from './drive.ts'
import { compiled, plain } from './programs.ts'
import { programFrom } from './random.ts'
import { loopsFrom } from './random-loops.ts'

const runs = Number(process.env['HEDDLE_RANDOM_PROGRAMS'] ?? 2100)
const seed = process.env['HEDDLE_SEED'] === undefined ? undefined : Number(process.env['HEDDLE_SEED'])

const lowerings = ['frames', 'generator'] as const

test.for(lowerings)(
  'random programs behave the same, made resumable by %s and preempted at every safepoint',
  {
    timeout: 600_000,
  },
  async lowering => {
    let checked = 0
    let preemptions = 0
    let ended = { returned: 0, threw: 0 }
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.nat(0xffff), { minLength: 20, maxLength: 180, size: 'max' }),
        async tape => {
          const source = programFrom(tape)
          try {
            const expected = await runPlain(plain(source, 'random.cjs')['main'] as Program)
            const strip = [1, 2, 5, 512][tape.length % 4]!
            const twin = await runTwin(
              compiled(source, 'random.cjs', { lowering, strip, sourcemap: false })['main'] as Program,
              true,
            )
            checked++
            preemptions += twin.preemptions
            ended[expected.ended as 'returned' | 'threw']++
            expect({ ended: twin.ended, value: twin.value, log: twin.log }).toEqual(expected)
          } catch (error) {
            throw new Error(`this program runs differently as a twin:\n${source}`, { cause: error })
          }
        },
      ),
      // A failure shows its seed and path; HEDDLE_SEED repeats the run.
      { numRuns: runs, ...(seed === undefined ? {} : { seed }) },
    )
    expect(checked).toBeGreaterThanOrEqual(runs)
    expect(preemptions).toBeGreaterThan(runs)
    expect(ended.returned).toBeGreaterThan(runs / 10)
  },
)

const nests = Number(process.env['HEDDLE_RANDOM_LOOPS'] ?? 500)

test.for(lowerings)(
  'random nests of loops behave the same, made resumable by %s, in strips of every length',
  {
    timeout: 600_000,
  },
  async lowering => {
    let preemptions = 0
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(0xffff), { minLength: 5, maxLength: 70, size: 'max' }), async tape => {
        const source = loopsFrom(tape)
        try {
          const expected = await runPlain(plain(source, 'loops.cjs')['main'] as Program)
          for (const strip of [1 + (tape.length % 3), 4 + (tape.length % 60), 512]) {
            const main = compiled(source, 'loops.cjs', { lowering, strip, sourcemap: false })[
              'main'
            ] as Program
            const { preemptions: count, ...outcome } = await runTwin(main, true)
            preemptions += count
            expect(outcome, `in strips of ${strip}`).toEqual(expected)
          }
        } catch (error) {
          throw new Error(`these loops run differently as a twin:\n${source}`, { cause: error })
        }
      }),
      { numRuns: nests, ...(seed === undefined ? {} : { seed }) },
    )
    expect(preemptions).toBeGreaterThan(nests * 10)
  },
)
