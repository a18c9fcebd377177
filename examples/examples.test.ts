import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { resolve } from 'node:path'
import { describe, expect, it } from 'vitest'

function run(...args: string[]): { out: string; err: string; code: number | null } {
  const ran = spawnSync(process.execPath, [resolve(import.meta.dirname, 'main.ts'), ...args], {
    encoding: 'utf8',
  })
  return { out: ran.stdout, err: ran.stderr, code: ran.status }
}

/** The lines that each example prints on every machine. Figures vary. */
const expected: Readonly<Record<string, { args?: string[]; lines: RegExp[] }>> = {
  'await-races': {
    lines: [
      /^✗ a cache of values: the final assertion failed: it was loaded 2 times$/,
      /^✓ a cache of promises: .*; complete/,
      /^✗ a seat is sold when it is paid: .*: the seat was sold to (?:ann and bob|bob and ann)$/,
      /^✓ a seat is held while it is paid: .*; complete/,
      /^✗ sessions that are read and written: .*: the session is \{"(?:user|basket)":"[^"]*"\}$/,
      /^✓ sessions with a queue: .*; complete/,
      /│ +│ cache\.ts:\d+$/,
      /^6 checks: 3 passed, 3 failed$/,
    ],
  },
  bank: {
    lines: [
      /^the saboteurs ended with: CpuLostError, CpuLostError$/,
      /^18000 transfers .+; CPUs that died: [1-2]; /,
      /not a cent lost$/,
    ],
  },
  'custom-policy': {
    lines: [
      /^short jobs beside six long ones/,
      /^ {2}\d+ ms with the fair class$/,
      /^ {2}\d+ ms with the policy "least attained service"/,
    ],
  },
  durable: {
    lines: [
      /^process \d+ begins$/,
      /^process \d+ is killed at \d+ %$/,
      /^process \d+ goes on at (?:[2-9]\d|100) %$/,
      /^there are 283146 primes below 4000000$/,
    ],
  },
  'job-queue': {
    lines: [/^the invoices were done after/, /^in order of completion: (invoice \d, ){3}report/, /^all done/],
  },
  'lock-free-queue': {
    lines: [/^✗ the hasty queue|the hasty queue/, /✓ the steady queue/, /^The first queue loses a message/],
  },
  linearizability: {
    lines: [
      /^✗ the hasty stack is linearizable: .*: no order of these calls explains their results/,
      /^ +bob +pop\(\) → 2 +├/,
      /The longest order that fits: push\(1\), push\(2\)/,
      /^✓ the steady stack is linearizable: .*; complete/,
      /^2 checks: 1 passed, 1 failed$/,
    ],
  },
  'parallel-files': {
    args: ['src/arena'],
    lines: [/^\d+ files, \d+ lines, \d+ words on \d+ CPUs$/, /^the longest line/],
  },
  pathfinder: { lines: [/^the low task needs the bus/, /^without inheritance/, /^with inheritance/] },
  pipeline: {
    lines: [/^5000 lines through 3 parsers$/, /^ {2}apples {3}6225\.00$/, /^ {2}dates {4}6237\.50$/],
  },
  survivor: {
    lines: [
      /^a checkpoint is written: \d+ bytes; CPU \d is killed, and the task with it$/,
      /^the task goes on, on CPU \d$/,
      /^the process was killed; \d+ bytes are left of it$/,
      /^another process goes on with these bytes$/,
      /^2298025 has the longest sequence: 560 numbers$/,
    ],
  },
  'unmarked-libraries': {
    lines: [
      /^Kernel\.boot\(\{ cpus: 2 \}\)$/,
      /^ {2}the slowest page took \d+ ms; after the last one \d of 6 long tasks were running$/,
      /^Kernel\.boot\(\{ cpus: 2, compile: /,
      /^ {2}a client leaves: its task ended \d+ ms later$/,
    ],
  },
  'shared-cache': { lines: [/^16000 look-ups by 8 tasks: 15700 hits, 300 computed, 0 wrong$/] },
}

/** These have tests of their own: a server, and the program of `npm start`. */
const elsewhere = new Set(['responsive-server', 'report-desk', 'server'])

describe('the examples', () => {
  it('are all tested', () => {
    const names = readdirSync(import.meta.dirname)
      .filter(file => file.endsWith('.ts') && !file.endsWith('.test.ts') && file !== 'main.ts')
      .map(file => file.slice(0, -3))
    expect(names.filter(name => !elsewhere.has(name)).sort()).toEqual(Object.keys(expected).sort())
  })

  it('are listed', () => {
    const { out, code } = run()
    expect(code).toBe(0)
    for (const name of Object.keys(expected)) expect(out).toContain(name)
    expect(run('nothing')).toMatchObject({ code: 2, err: 'example: no example is named nothing\n\n' })
  })

  it('print one line about a wrong argument', () => {
    const { err, code } = run('parallel-files', 'nowhere')
    expect(code).toBe(2)
    expect(err).toMatch(/^parallel-files: .*nowhere is no folder\. .*\n$/)
  })

  it.for(Object.entries(expected))('%s', ([name, { args = [], lines }]) => {
    const { out, err, code } = run(name, ...args)
    expect(err).toBe('')
    expect(code).toBe(0)
    const printed = out.split('\n')
    for (const line of lines)
      expect(
        printed.some(text => line.test(text)),
        `${line} in\n${out}`,
      ).toBe(true)
  })
})
