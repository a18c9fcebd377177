import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseSync } from 'oxc-parser'
import { expect, test } from 'vitest'
import { sourceFiles, src } from './sourcelayers.ts'

/**
 * A loop that waits for another thread uses `awaitChange` (src/arena/sync/awaiting.ts) or `awaitOwner`
 * (src/futex/recovery/awaitowner.ts), which spin, park, and check whether the other thread is alive. For this
 * test a loop waits if it has no bound, does not yield its thread (`yield`, `await`), and
 *
 *   pauses      calls `pause`
 *   parks       calls `Atomics.wait`
 *   polls       its condition loads a shared word
 *   repeats     loads a shared word, and has a `continue`
 */
const folders = /^(arena|machine|sched|coroutine|futex|handoff|kernel|payload|sync)\//

/** Loops that look like waits and are not, or that implement the wait themselves. */
const allowed: Readonly<Record<string, string>> = {
  'arena/memory/slab.ts restock: repeats':
    'each turn that fails means that another thread has got on: it has taken the leaf',
  'arena/memory/slab.ts descend: repeats': 'each turn marks a full word or goes down a level',
  'arena/sync/spinlock.ts acquireContended: parks': 'the wait at a lock: parks, and looks at deaths',
  'futex/robust/mutex.ts passOn: repeats':
    'each turn that fails means that another thread has got on: the word has changed',
  'futex/robust/mutex.ts take: repeats':
    'each turn that fails means that another thread has got on: the word has changed',
  'futex/pi/pending.ts takeCalled: repeats':
    'each turn that fails means that another thread has got on: the word has changed',
  'futex/pi/pi.ts lockPi: repeats':
    'each turn begins the call again because the word has changed; for an owner that ends it waits in awaitExit',
  'futex/pi/pichain.ts stepBetween: repeats':
    'each turn that fails means that another thread has got on: the word has changed',
  'futex/robust/robust.ts markDead: repeats':
    'each turn that fails means that another thread has got on: the word has changed',
  'futex/core/space.ts ownedIn: polls': 'walks the chain of a bucket, whose lock it holds',
  'machine/core/halt.ts spinForKick: pauses': 'a CPU without work, for as long as its budget',
  'machine/timekeeper/timekeeper.ts keepTime: parks':
    'the timekeeper sleeps until a slice ends, or it is told',
  'sched/ext/dispatch.ts consumeFirst: polls':
    'each turn takes a lock, and repeats only when the task has moved meanwhile',
  'sched/ext/dispatch.ts giveLocal: repeats':
    'each turn takes a lock, and repeats only when the task has moved meanwhile',
  'sched/core/wakeup.ts waitOffCpu: pauses': 'the wait for a switch: looks at deaths',
  'sched/core/wakeup.ts waitOffCpu: parks': 'the wait for a switch: parks, and looks at deaths',
  'sync/mutex/parkinglock.ts admit: repeats':
    'each turn that fails means that another thread has got on: the word has changed',
  'sync/small/once.ts admit: repeats':
    'each turn that fails means that another thread has got on: the word has changed',
  'sync/wait/objectlock.ts lockContended: pauses': 'the lock of a place: parks, and looks at deaths',
  'sync/rwlock/rwwaits.ts admit: repeats':
    'each turn that fails means that another thread has got on: the word has changed',
  'sync/small/waitgroup.ts changeLocked: repeats':
    'each turn that fails means that another thread has got on: the word has changed',
  'kernel/boot/allowlist.ts read: repeats': 'repeats only when another policy was loaded meanwhile',
  'payload/publishedobjects.ts askFor: parks':
    'waits for an answer while the sender lives, and for a time by the clock after that',
}

interface Node {
  readonly type: string
  readonly start: number
  readonly [key: string]: unknown
}

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && typeof (value as Node).type === 'string'

function childrenOf(node: Node): Node[] {
  return Object.values(node).flatMap(value =>
    Array.isArray(value) ? value.filter(isNode) : isNode(value) ? [value] : [],
  )
}

const isFunction = ({ type }: Node): boolean => /Function|MethodDefinition/.test(type)

function* within(node: Node): Generator<Node> {
  yield node
  for (const child of childrenOf(node)) if (!isFunction(child)) yield* within(child)
}

function calleeOf(node: Node): string {
  if (node.type !== 'CallExpression') return ''
  const callee = node['callee'] as Node
  if (callee.type === 'Identifier') return callee['name'] as string
  const { object, property } = callee as unknown as { object?: Node; property?: Node }
  return `${object?.['name'] as string}.${property?.['name'] as string}`
}

/** The forbidden action of a loop; '': none. */
function waitingOf(loop: Node): string {
  const test = loop['test'] as Node | null | undefined
  const polls = isNode(test) && [...within(test)].some(node => calleeOf(node) === 'Atomics.load')
  const isBounded = loop.type === 'ForStatement' && isNode(test) && !polls
  if (isBounded) return ''
  const nodes = [...within(loop)]
  const calls = new Set(nodes.map(calleeOf))
  if (calls.has('awaitChange') || calls.has('awaitOwner')) return ''
  if (nodes.some(({ type }) => type === 'YieldExpression' || type === 'AwaitExpression')) return ''
  if (calls.has('pause')) return 'pauses'
  if (calls.has('Atomics.wait')) return 'parks'
  if (polls) return 'polls'
  if (calls.has('Atomics.load') && nodes.some(({ type }) => type === 'ContinueStatement')) return 'repeats'
  return ''
}

const loops = new Set(['ForStatement', 'WhileStatement', 'DoWhileStatement'])

function waitingLoops(source: string, file: string): string[] {
  const found: string[] = []
  const visit = (node: Node, name: string): void => {
    const own = ((node['id'] ?? node['key']) as { name?: string } | null | undefined)?.name
    const inside = isFunction(node) && own !== undefined ? own : name
    if (loops.has(node.type)) {
      const what = waitingOf(node)
      if (what !== '') found.push(`${file} ${inside}: ${what}`)
    }
    for (const child of childrenOf(node)) visit(child, inside)
  }
  visit(parseSync(file, source).program as unknown as Node, '')
  return found
}

test('loops wait for another thread only through awaitChange and awaitOwner', () => {
  const found = sourceFiles()
    .filter(file => folders.test(file))
    .flatMap(file => waitingLoops(readFileSync(join(src, file), 'utf8'), file))
  expect([...new Set(found)].filter(each => allowed[each] === undefined)).toEqual([])
  expect(Object.keys(allowed).filter(each => !found.includes(each))).toEqual([])
})

test.each([
  ['repeats', 'for (;;) { const at = Atomics.load(i32, 0); if (at < 0) continue; return at }'],
  ['pauses', 'for (;;) { if (done()) return; pause() }'],
  ['polls', 'while (Atomics.load(i32, 0) === 1) {}'],
  ['parks', 'do { Atomics.wait(i32, 0, 1) } while (i32[0] === 1)'],
])('a loop that %s is found', (what, loop) => {
  expect(waitingLoops(`function takes(i32) { ${loop} }`, 'x.ts')).toEqual([`x.ts takes: ${what}`])
})

test('a loop that counts, yields its thread, or waits through awaitChange is not found', () => {
  for (const loop of [
    'for (let n = 0; n < 9; n++) pause()',
    'for (;;) { if (awaitChange(thread, i32, 0, 1, 2)) return }',
    'for (;;) { if (Atomics.compareExchange(i32, 0, 1, 2) === 1) return }',
  ])
    expect(waitingLoops(`function takes(i32) { ${loop} }`, 'x.ts')).toEqual([])
  expect(waitingLoops('async function f() { while (Atomics.load(i32, 0)) await turn() }', 'x.ts')).toEqual([])
})
