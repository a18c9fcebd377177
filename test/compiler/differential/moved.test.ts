/** Every program with a move at every safepoint: results, errors and effects are those of the plain code. */
import { describe, expect, test } from 'vitest'
import { type Program, runPlain, runTwin } from './drive.ts'
import { movable, runMoved } from './move.ts'
import { plain, programFiles, readProgram } from './programs.ts'

/** Programs that see a difference, which docs/moving.md names. */
const different: Readonly<Record<string, string>> = {
  callsObjectMethods: 'it compares `this` with an object of its module, which is copied',
  functionsInVariables: 'the engine names the box in the message of a call that is no function',
  generatorsAsObjects: 'the engine names the box in the message of a `new` that is no constructor',
  forInAsksForEachKeyWhenItGetsThere: 'a Proxy among the prototypes sees that all keys are read first',
  elementsReadByGetters: 'an array with getters becomes one with values',
  settersOfThePrototype: 'it gives Array.prototype a setter, which the codec meets too',
  stackOverflowIsCatchable: 'it saves two million frames, each of which a move would write',
}

let programs = 0
let preemptions = 0
let moves = 0
const obstacles = new Map<string, number>()

for (const file of programFiles()) {
  const source = readProgram(file)
  const original = plain(source, file)
  describe(`${file.replace(/\.\w+$/, '').replaceAll('-', ' ')}, moved at every safepoint`, () => {
    for (const name of Object.keys(original)) {
      if (typeof original[name] !== 'function' || different[name] !== undefined) continue
      programs++
      test(name, async () => {
        const expected = await runPlain(plain(source, file)[name] as Program)
        expect(await runPlain(movable(source, file)[name] as Program), 'the plain form').toEqual(expected)
        const { preemptions: _, ...preempted } = await runTwin(movable(source, file)[name] as Program, true)
        expect(preempted, 'preempted at every safepoint, and not moved').toEqual(expected)
        for (const strip of [undefined, 1]) {
          const program = movable(source, file, strip === undefined ? {} : { strip })[name] as Program
          const { preemptions: count, moves: moved, obstacles: met, ...outcome } = await runMoved(program)
          expect(outcome, `moved at every safepoint, in strips of ${strip}`).toEqual(expected)
          preemptions += count
          moves += moved
          for (const [what, times] of met) obstacles.set(`${name}: ${what}`, times)
        }
      })
    }
  })
}

test('the programs are many, and they moved', () => {
  expect(programs).toBeGreaterThanOrEqual(250)
  expect(moves).toBeGreaterThan(20_000)
  expect(preemptions).toBeGreaterThan(moves)
})

test('what does not move has a reason that names it', () => {
  for (const what of obstacles.keys())
    expect(what).toMatch(/: (?:.* is on its stack|it runs as a generator|frames\[\d+\].*: .* cannot travel)/)
})
