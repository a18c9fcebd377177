import { spawn } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'

const root = join(import.meta.dirname, '..', '..')
const folder = mkdtempSync(join(tmpdir(), 'heddle-broken-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

interface Mistake {
  readonly what: string
  readonly file: string
  readonly right: string
  readonly wrong: string
  readonly kind: string
}

/** One line of a protocol, as it is and as it must not be: the checks have to see the difference. */
const mistakes: readonly Mistake[] = [
  {
    what: 'a set of slots whose taker clears a word before the word above it',
    file: 'memory/marks',
    right: `    for (let bits = Atomics.exchange(i32, at, 0); bits !== 0; bits &= bits - 1) {`,
    wrong: `    if (level > 0) this.takeFrom(0, 1, act)
    for (let bits = Atomics.exchange(i32, at, 0); bits !== 0 && level === 0; bits &= bits - 1) {`,
    kind: 'assertion',
  },
  {
    what: 'a set of slots whose adder sets the bit above first',
    file: 'memory/marks',
    right: `    for (let level = 0; level < levels.length; level++) {
      Atomics.or(i32, levels[level] + (at >>> 5), 1 << (at & 31)) // (A), then (B)
      at >>>= 5
    }`,
    wrong: `    Atomics.or(i32, levels[1], 1 << (at >>> 5))
    Atomics.or(i32, levels[0] + (at >>> 5), 1 << (at & 31))`,
    kind: 'assertion',
  },
  {
    what: 'a parked thread that takes the spin lock as if no other thread were parked',
    file: 'sync/spinlock',
    right: 'Atomics.compareExchange(i32, at, 0, tag | SLEEPERS) === 0',
    wrong: 'Atomics.compareExchange(i32, at, 0, tag) === 0',
    kind: 'lost-wakeup',
  },
  {
    what: 'a rescuer that breaks a spin lock and forgets the parked threads',
    file: 'sync/spinlock',
    right: 'Atomics.compareExchange(i32, at, seen, thread.ownerTag | SLEEPERS) === seen',
    wrong: 'Atomics.compareExchange(i32, at, seen, thread.ownerTag) === seen',
    kind: 'lost-wakeup',
  },
  {
    what: 'a thread that parks at a spin lock and does not write down which',
    file: 'sync/spinlock',
    right: 'Atomics.store(i32, CONTENDED_WORDS + thread.id, lock) // (E)\n  // From',
    wrong: '// From',
    kind: 'lost-wakeup',
  },
  {
    what: 'a thread that sees deaths and checks only the holder of the lock that it wants',
    file: 'sync/spinlock',
    right: 'else if (isDead(holder)) rescue(holder, at)',
    wrong: 'else if (isDead(holder)) return',
    kind: 'livelock',
  },
  {
    what: 'a thread that sees deaths and skips a free lock at which others sleep',
    file: 'sync/spinlock',
    right: 'if (holder < 0) nudgeLock(i32, at)',
    wrong: 'if (holder < 0) return',
    kind: 'livelock',
  },
  {
    what: 'an SPSC ring that publishes before it writes',
    file: 'rings/spsc',
    right: 'i32[start + SLOTS + head] = value\n    Atomics.store(i32, start + HEAD, next)',
    wrong: 'Atomics.store(i32, start + HEAD, next)\n    i32[start + SLOTS + head] = value',
    kind: 'data-race',
  },
  {
    what: 'a slab that is full for a thread while another has slots in its stock',
    file: 'memory/slab',
    right: 'if (!this.restock(i32) && this.sweep(i32) === 0) return 0 // (G)',
    wrong: 'if (!this.restock(i32)) return 0',
    kind: 'assertion',
  },
  {
    what: 'a slab whose stock is a right to its slots',
    file: 'memory/slab',
    right: 'if (claim(i32, pointer, thread.ownerTag)) return pointer // (H)',
    wrong: 'Atomics.or(i32, pointer - 1, thread.ownerTag); return pointer',
    kind: 'assertion',
  },
  {
    what: 'a slab that claims a slot by the header that it has read',
    file: 'memory/slab',
    right: 'return Atomics.compareExchange(i32, pointer - 1, header, nextLife(header, ownerTag)) === header',
    wrong: 'return Atomics.store(i32, pointer - 1, nextLife(header, ownerTag)) !== header',
    kind: 'data-race',
  },
  {
    what: 'a slab whose reclaim leaves the slots of the dead thread',
    file: 'memory/slab',
    right: 'if ((header & OWNER) !== deadId + 1) continue',
    wrong: 'if ((header & OWNER) !== PUBLISHED + 1) continue',
    kind: 'assertion',
  },
  {
    what: 'an adoption of RCU callbacks that a death leaves with the name of the dead',
    file: 'sync/rcu',
    right: 'i32[node + RcuNode.callback] & CALLBACK, gone + 1)',
    wrong: 'i32[node + RcuNode.callback] & CALLBACK, dead + 1)',
    kind: 'assertion',
  },
  {
    what: 'an adoption of RCU callbacks that a death leaves with the old end of the list',
    file: 'sync/rcu',
    right: 'of this.repair(i32, gone))',
    wrong: 'of this.listedOn(i32, gone))',
    kind: 'assertion',
  },
  {
    what: 'a grace period that ends while a CPU has not been quiescent',
    file: 'sync/rcu',
    right: '((seen - least) | 0) < 0',
    wrong: '((seen - least) | 0) < -2',
    kind: 'use-after-free',
  },
]

/** The kinds of failure that the checks of a file find in a copy of the arena with one line changed. */
function kindsFound({ file, right, wrong }: Mistake, copy: string): Promise<string[]> {
  mkdirSync(join(copy, 'src'), { recursive: true })
  cpSync(join(root, 'src/arena'), join(copy, 'src/arena'), { recursive: true })
  symlinkSync(join(root, 'src/checker'), join(copy, 'src/checker'))
  writeFileSync(join(copy, 'package.json'), '{ "type": "module" }')
  const path = join(copy, 'src/arena', `${file}.ts`)
  const source = readFileSync(path, 'utf8')
  expect(source.split(right), 'the line is there, once').toHaveLength(2)
  writeFileSync(
    path,
    source.replace(right, () => wrong),
  )
  return new Promise(resolve => {
    const check = join(copy, 'src/arena', `${file}.check.ts`)
    const child = spawn(process.execPath, [join(root, 'src/cli/main.ts'), 'check', check, '--json'], {
      cwd: copy,
    })
    let out = ''
    child.stdout.on('data', (text: Buffer) => void (out += text))
    child.on('close', () => {
      const results = out
        .trim()
        .split('\n')
        .map(line => JSON.parse(line) as { failure: { kind: string } | null })
      resolve(results.flatMap(({ failure }) => (failure === null ? [] : [failure.kind])))
    })
  })
}

describe('the checks of the arena see', () => {
  mistakes.forEach((mistake, i) => {
    test(mistake.what, async () => {
      expect(await kindsFound(mistake, join(folder, String(i)))).toContain(mistake.kind)
    })
  })
})
