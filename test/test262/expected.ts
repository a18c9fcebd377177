/** The expected failures of test262, each with its reason. */
import type { Mode } from './execute.ts'

interface Expected {
  reason: string
  /** Parts of paths. */
  tests: readonly string[]
  /** The prefixes of the modes in which they fail; without it, all modes. */
  modes?: readonly string[]
}

const expected: readonly Expected[] = [
  {
    reason:
      '`caller` of a function, which no standard defines, is the resumable form of the one that called it, and is called without ' +
      'a driver',
    tests: ['language/arguments-object/10.6-13-a-2.js', 'language/arguments-object/10.6-13-a-3.js'],
    modes: ['frames-stops', 'generator-run', 'generator-preempted', 'generator-stops'],
  },
  {
    reason:
      'the parser refuses a call as the target of an assignment, which engines take and fail on when it runs: the file ' +
      'stays plain, and a diagnostic says so',
    tests: ['annexB/language/expressions/assignmenttargettype/'],
  },
  {
    reason:
      'a task awaits by `then`, which reads the `constructor` of a promise once more than `await` does: seen only by a program ' +
      'that puts a getter there',
    tests: [
      'ticks-with-sync-iter-resolved-promise-and-constructor-lookup',
      'ticks-with-async-iter-resolved-promise-and-constructor-lookup',
    ],
    modes: [
      'frames-run',
      'frames-preempted',
      'frames-stops',
      'generator-run',
      'generator-preempted',
      'generator-stops',
    ],
  },
]

/** Why a failure of the test in this mode is expected; null if it is not. */
export function expectedReason(path: string, mode: Mode): string | null {
  for (const { reason, tests, modes } of expected) {
    if (modes !== undefined && !modes.some(name => mode.startsWith(name))) continue
    if (tests.some(part => path.includes(part))) return reason
  }
  return null
}
