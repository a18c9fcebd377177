import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

/** One check of each protocol that is over in a moment. `heddle check src` runs them all. */
const protocols: readonly [protocol: string, file: string, check: string][] = [
  ['slab', 'src/arena/memory/slab.check.ts', 'two threads with 2 slots both get one, in any interleaving'],
  ['spin lock', 'src/arena/sync/spinlock.check.ts', 'a spin lock whose owner dies at any step is broken'],
  ['rings', 'src/arena/rings/spsc.check.ts', 'what is written before the push is whole after the pop'],
  ['rcu', 'src/arena/sync/rcu.check.ts', 'the callbacks of a CPU that dies at any step are adopted and run'],
  ['scheduler', 'src/sched/core/races.check.ts', 'double wakeup'],
  [
    'scheduler deaths',
    'src/sched/recovery/recovery.check.ts',
    'a CPU dies at any step: switch to a better one',
  ],
  ['ext policies', 'src/sched/ext/ext.check.ts', 'a CPU takes a task that is stopped'],
  ['coroutines', 'src/coroutine/core/switch.check.ts', 'problem 1: the tick before the switch'],
  ['futex', 'src/futex/operations/waitwake.check.ts', 'a wait is woken and counted, or refused'],
  ['requeue', 'src/futex/operations/requeue.check.ts', 'requeue both ways against each other'],
  ['PI', 'src/futex/pi/pi.check.ts', 'plain: lock against unlock of a word that says WAITERS from before'],
  ['robust', 'src/futex/robust/robust.check.ts', 'robust: the owner dies at any step while it holds two'],
  ['hand-off', 'src/handoff/handoff.check.ts', 'one through the shim, one plainly'],
  ['sync mutex', 'src/sync/mutex/mutex.check.ts', 'an unlock against a lock: one at a time'],
  ['payloads', 'src/payload/exchange.check.ts', 'a receiver that dies at any step of taking'],
  ['deaths of CPUs', 'src/machine/core/deaths.check.ts', 'a CPU breaks a lock of a dead one'],
]

test('each protocol has a check that is explored to its end', async () => {
  const root = fileURLToPath(new URL('../..', import.meta.url))
  const list = protocols.map(([, file, name]) => [file, name])
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['test/checker/fixtures/protocols.ts', JSON.stringify(list)],
    { cwd: root, maxBuffer: 1 << 24 },
  )
  const results = stdout
    .split('\n')
    .filter(line => line.startsWith('{'))
    .map(line => JSON.parse(line) as { name: string; outcome: string; complete: boolean; executions: number })
  for (const [protocol, , name] of protocols) {
    const found = results.filter(result => result.name.includes(name))
    expect(found, protocol).not.toEqual([])
    for (const result of found) expect(result, protocol).toMatchObject({ outcome: 'passed', complete: true })
  }
})
