/**
 * Random programs that move at random safepoints. The same ones each time; others if their number is given.
 */
import { expect, test } from 'vitest'
import { SeededRandom } from '../../../src/machine/simulated/random.ts'
import { type Program, runPlain } from './drive.ts'
import { movable, runMoved } from './move.ts'
import { plain } from './programs.ts'
import { loopsFrom } from './random-loops.ts'
import { programFrom } from './random.ts'

const asked = process.env['HEDDLE_RANDOM_MOVES']
const seed = Number(process.env['HEDDLE_SEED'] ?? (asked === undefined ? 1 : Date.now() % 1_000_000))

/** Programs that found a mistake once. */
const found = [1006]

const kinds = [
  { kind: 'statements', runs: 100, lengths: [20, 180], write: programFrom },
  { kind: 'nests of loops', runs: 40, lengths: [5, 70], write: loopsFrom },
] as const

test.for(kinds)(
  'random programs of $kind do the same when they move at random safepoints',
  { timeout: 3_600_000 },
  async ({ kind, runs, lengths: [least, most], write }) => {
    const count = asked === undefined ? runs : Number(asked)
    let moves = 0
    let obstacles = 0
    const seeds = [...found, ...Array.from({ length: count }, (_, run) => seed + run)]
    for (const own of seeds) {
      const random = new SeededRandom(own)
      const tape = Array.from({ length: least + random.below(most - least) }, () => random.below(0x10000))
      const source = write(tape)
      const strip = [1, 3, 512][random.below(3)]!
      const often = 1 + random.below(4)
      const file = 'random.cjs'
      try {
        const expected = await runPlain(plain(source, file)['main'] as Program)
        const main = movable(source, file, { strip, sourcemap: false })['main'] as Program
        const { ended, value, log, ...moved } = await runMoved(main, () => random.below(often) === 0)
        expect({ ended, value, log }).toEqual(expected)
        moves += moved.moves
        for (const times of moved.obstacles.values()) obstacles += times
      } catch (error) {
        throw new Error(
          `HEDDLE_SEED=${own}: this program of ${kind} runs differently when it moves:\n${source}`,
          { cause: error },
        )
      }
    }
    expect(moves).toBeGreaterThan(count * 2)
    expect(moves, `${obstacles} obstacles`).toBeGreaterThan(obstacles / 10)
  },
)
