import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { askLinux, buildLinuxFutex } from './linux.ts'
import { Play } from './pi-play.ts'
import { makePiScript, piLineOf, type PiStep } from './pi-script.ts'

interface Recording {
  readonly priorities: boolean
  readonly lines: string[]
}

const recorded: Record<string, Recording> = JSON.parse(
  readFileSync(join(import.meta.dirname, 'fixtures', 'linux-pi-answers.json'), 'utf8'),
)

/** Step by step, so that a difference names its step. */
function withSteps(script: readonly PiStep[], lines: readonly string[]): string[] {
  return lines.map((line, at) => `${piLineOf(script[at])} -> ${line}`)
}

describe('random scripts about locks have the recorded results of a Linux kernel', () => {
  for (const kind of ['promise', 'task'] as const) {
    test(`with each ${kind} as an owner`, async () => {
      for (const [seed, { priorities, lines }] of Object.entries(recorded)) {
        const script = makePiScript(Number(seed), priorities)
        const here = await new Play(kind).run(script)
        expect(withSteps(script, here), `seed ${seed}`).toEqual(withSteps(script, lines))
      }
      expect(Object.keys(recorded).length).toBeGreaterThanOrEqual(200)
    })
  }
})

const program = buildLinuxFutex('linux-pi.c')
test.skipIf(program === undefined)(
  'random scripts about locks have the results of the kernel of this machine',
  async () => {
    const first = 1000 + (Date.now() % 100_000)
    for (let seed = first; seed < first + 5; seed++) {
      const script = makePiScript(seed, false)
      const kernel = askLinux(program as string, script.map(piLineOf))
      const here = await new Play('promise').run(script)
      expect(withSteps(script, here), `seed ${seed}`).toEqual(withSteps(script, kernel))
    }
  },
)
