import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { Bench, type Pending } from './bench.ts'
import type { Kind } from './stage.ts'
import { buildLinuxFutex, runOnLinux } from './linux.ts'
import { makeScript, type Step } from './script.ts'

/** Runs the same script on our futexes, and prints the answers in the same format. */
async function runHere(kind: Kind, script: readonly Step[]): Promise<string[]> {
  const bench = new Bench(kind)
  const open = new Map<number, Pending>()
  const lines: string[] = []
  try {
    for (const step of script) {
      let result = 0
      if ('set' in step) {
        Atomics.store(bench.view, step.set, step.value)
      } else if ('waiter' in step) {
        const { word, op, value: val, val3, timeout } = step
        const pending = await bench.start({
          op,
          word,
          val,
          val3,
          ...(timeout === 0 && { timeout: { sec: 0, nsec: 0 } }),
        })
        open.set(step.waiter, pending)
        // A call that returns immediately may be on its queue for a moment.
        if (timeout === 0) await pending.result
      } else {
        result = bench.call(step.call, step.word, step.value, step.val2, step.word2, step.val3)
      }
      let told = ''
      for (const [id, pending] of [...open].sort(([a], [b]) => a - b)) {
        if (!(await pending.isDone())) continue
        told += ` ${id}:${await pending.result}`
        open.delete(id)
      }
      const words = [0, 1, 2, 3].map(word => bench.view[word] >>> 0)
      lines.push(`${result}${told} | ${words.join(' ')}`)
    }
    expect(await bench.leftovers()).toEqual({ waiters: 0, queued: 0 })
    return lines
  } finally {
    await bench.close()
  }
}

const recorded: Record<string, string[]> = JSON.parse(
  readFileSync(join(import.meta.dirname, 'fixtures', 'linux-answers.json'), 'utf8'),
)

/** Step by step, so that a difference names its step. */
function withSteps(script: readonly Step[], lines: readonly string[]): string[] {
  return lines.map((line, at) => `${JSON.stringify(script[at])} -> ${line}`)
}

describe('random scripts have the recorded results of a Linux kernel', () => {
  for (const kind of ['promise', 'task'] as const) {
    test(`with each ${kind} as a waiter`, async () => {
      for (const [seed, lines] of Object.entries(recorded)) {
        const script = makeScript(Number(seed))
        expect(withSteps(script, await runHere(kind, script)), `seed ${seed}`).toEqual(
          withSteps(script, lines),
        )
      }
      expect(Object.keys(recorded).length).toBeGreaterThanOrEqual(100)
    })
  }

  test('with threads as waiters, a few of them', async () => {
    for (const [seed, lines] of Object.entries(recorded).slice(0, 8)) {
      const script = makeScript(Number(seed))
      expect(withSteps(script, await runHere('thread', script)), `seed ${seed}`).toEqual(
        withSteps(script, lines),
      )
    }
  })
})

const program = buildLinuxFutex()
test.skipIf(program === undefined)(
  'random scripts have the results of the kernel of this machine',
  async () => {
    const first = 1000 + (Date.now() % 100_000)
    for (let seed = first; seed < first + 5; seed++) {
      const script = makeScript(seed)
      const kernel = runOnLinux(program as string, script)
      expect(withSteps(script, await runHere('promise', script)), `seed ${seed}`).toEqual(
        withSteps(script, kernel),
      )
    }
  },
)
