import { describe, expect, test } from 'vitest'
import { check } from '../check.ts'
import { Random } from '../search/random.ts'
import type { AsyncSetup } from './program.ts'

/** One event that a task waits for. When it has happened, the task writes its name into the log. */
type Wait =
  | { readonly kind: 'io' }
  | { readonly kind: 'line' }
  | { readonly kind: 'takes'; readonly ms: readonly number[] }
  | { readonly kind: 'sleep'; readonly ms: number }
  | { readonly kind: 'immediate' }
  | { readonly kind: 'message' }
  | { readonly kind: 'both'; readonly ms: number }
  | { readonly kind: 'abort'; readonly ms: number }
  /** Two concurrent timers; the first writes a line of its own. */
  | { readonly kind: 'two'; readonly ms: readonly [number, number] }

type Program = readonly (readonly Wait[])[]

function randomProgram(random: Random): Program {
  const ms = (): number => 1 + random.below(3)
  const kinds: readonly (() => Wait)[] = [
    () => ({ kind: 'io' }),
    () => ({ kind: 'line' }),
    () => ({ kind: 'takes', ms: random.below(2) === 0 ? [ms()] : [0, ms()] }),
    () => ({ kind: 'sleep', ms: ms() }),
    () => ({ kind: 'sleep', ms: ms() }),
    () => ({ kind: 'immediate' }),
    () => ({ kind: 'message' }),
    () => ({ kind: 'both', ms: ms() }),
    () => ({ kind: 'abort', ms: ms() }),
    () => ({ kind: 'two', ms: [ms(), 2 + random.below(4)] }),
  ]
  const length = (): number => 1 + random.below(2)
  return Array.from({ length: 2 }, () =>
    Array.from({ length: length() }, () => kinds[random.below(kinds.length)]()),
  )
}

/** The final logs of all executions of the check. */
async function explored(program: Program): Promise<Set<string>> {
  const logs = new Set<string>()
  const setup: AsyncSetup = ({ io }) => {
    const log: string[] = []
    const { port1, port2 } = new MessageChannel()
    const receivers: ((text: string) => void)[] = []
    port2.onmessage = () => receivers.shift()?.('')
    const sleep = (ms: number): Promise<void> => new Promise(done => void setTimeout(done, ms))
    const waitFor = async (wait: Wait, task: number): Promise<string> => {
      switch (wait.kind) {
        case 'io':
          return await io('io', '')
        case 'line':
          return await io('line', '', { line: 'one' })
        case 'takes':
          return await io('takes', '', { takes: wait.ms })
        case 'sleep':
          return await sleep(wait.ms).then(() => '')
        case 'immediate':
          return await new Promise(done => void setImmediate(done, ''))
        case 'message':
          return await new Promise(done => {
            receivers.push(done)
            port1.postMessage(null)
          })
        case 'both':
          return (await Promise.all([io('io'), sleep(wait.ms)])) && ''
        case 'abort':
          return await io('io', '', { signal: AbortSignal.timeout(wait.ms) }).catch(() => 'x')
        case 'two':
          setTimeout(() => log.push(`${task}t`), wait.ms[0])
          return await sleep(wait.ms[1]).then(() => '')
      }
    }
    const body = (waits: readonly Wait[], task: number) => async (): Promise<void> => {
      log.push(`${task}`)
      for (const wait of waits) log.push(`${task}${await waitFor(wait, task)}`)
    }
    return { tasks: program.map(body), final: () => void logs.add(log.join(' ')) }
  }
  const result = await check.async('random', { rerun: false }, setup)
  expect(result.complete).toBe(true)
  return logs
}

interface Simulated {
  readonly task: number
  readonly at: number
  readonly line: string | undefined
  readonly id: number
  readonly happen: () => void
}

/**
 * The same program in real time, by brute force. Every operation takes every whole number of milliseconds up
 * to more than all timers together. Events that are due at the same time happen in every order that Node
 * allows. It does not use `TimeOrder`.
 */
class World {
  now = 0
  made = 0
  pending: Simulated[] = []
  log: string[] = []
  readonly choices: Choices

  constructor(choices: Choices) {
    this.choices = choices
  }

  after(ms: number, line: string | undefined, happen: () => void, task: number): Simulated {
    const event = { at: this.now + ms, line, happen, task, id: this.made++ }
    this.pending.push(event)
    return event
  }

  cancel(event: Simulated): void {
    this.pending = this.pending.filter(other => other !== event)
  }

  run(): void {
    while (this.pending.length > 0) {
      // An event waits for the older events of its line, however late they are.
      const first = this.pending.filter(
        event =>
          !this.pending.some(
            other => other.line === event.line && event.line !== undefined && other.id < event.id,
          ),
      )
      const soonest = Math.min(...first.map(({ at }) => Math.max(at, this.now)))
      const due = first.filter(({ at }) => Math.max(at, this.now) === soonest)
      const event = due[this.choices.pick(due.length)]
      this.now = soonest
      this.cancel(event)
      event.happen()
    }
  }
}

/** Enumerates all sequences of choices. */
class Choices {
  private readonly taken: { options: number; at: number }[] = []
  private next = 0

  pick(options: number): number {
    if (this.next === this.taken.length) this.taken.push({ options, at: 0 })
    return this.taken[this.next++].at
  }

  advance(): boolean {
    this.next = 0
    for (let last = this.taken.pop(); last !== undefined; last = this.taken.pop()) {
      if (++last.at < last.options) return this.taken.push(last) > 0
    }
    return false
  }
}

function enumerated(program: Program): Set<string> {
  const logs = new Set<string>()
  const longest = program
    .flat()
    .reduce((sum, wait) => sum + ('ms' in wait ? Math.max(...[wait.ms].flat()) : 1), 0)
  const choices = new Choices()
  do {
    const world = new World(choices)
    const anyTime = (): number => choices.pick(longest + 1)
    const go = (task: number, at: number): void => {
      const wait = program[task][at]
      if (wait === undefined) return
      const done = (text: string) => (): void => {
        world.log.push(`${task}${text}`)
        go(task, at + 1)
      }
      switch (wait.kind) {
        case 'io':
          return void world.after(anyTime(), undefined, done(''), task)
        case 'line':
          return void world.after(anyTime(), 'line', done(''), task)
        case 'takes':
          return void world.after(wait.ms[choices.pick(wait.ms.length)], undefined, done(''), task)
        case 'sleep':
          return void world.after(wait.ms, `timer ${wait.ms}`, done(''), task)
        case 'immediate':
          return void world.after(choices.pick(2), 'immediate', done(''), task)
        case 'message':
          return void world.after(anyTime(), 'port', done(''), task)
        case 'both': {
          let left = 2
          const one = (): void => {
            if (--left === 0) done('')()
          }
          world.after(anyTime(), undefined, one, task)
          return void world.after(wait.ms, `timer ${wait.ms}`, one, task)
        }
        case 'two':
          world.after(wait.ms[0], `timer ${wait.ms[0]}`, () => void world.log.push(`${task}t`), task)
          return void world.after(wait.ms[1], `timer ${wait.ms[1]}`, done(''), task)
        case 'abort': {
          const timer = world.after(
            wait.ms,
            `timer ${wait.ms}`,
            () => {
              if (!world.pending.includes(operation)) return
              world.cancel(operation)
              done('x')()
            },
            task,
          )
          const operation = world.after(anyTime(), undefined, done(''), task)
          return void timer
        }
      }
    }
    program.forEach((_, task) =>
      world.after(
        anyTime(),
        undefined,
        () => {
          world.log.push(`${task}`)
          go(task, 0)
        },
        task,
      ),
    )
    world.run()
    logs.add(world.log.join(' '))
  } while (choices.advance())
  return logs
}

/**
 * Programs in which a single rule decides: a line, a port, immediates, timers whose order follows from the
 * order of others.
 */
const chosen: readonly Program[] = [
  [[{ kind: 'line' }], [{ kind: 'line' }]],
  [[{ kind: 'message' }], [{ kind: 'message' }]],
  [[{ kind: 'immediate' }], [{ kind: 'immediate' }]],
  [[{ kind: 'two', ms: [1, 4] }], [{ kind: 'two', ms: [3, 5] }]],
  [[{ kind: 'sleep', ms: 3 }], [{ kind: 'io' }, { kind: 'sleep', ms: 2 }]],
  [
    [
      { kind: 'sleep', ms: 2 },
      { kind: 'sleep', ms: 1 },
    ],
    [{ kind: 'sleep', ms: 3 }],
  ],
  [[{ kind: 'takes', ms: [0, 2] }], [{ kind: 'takes', ms: [1] }]],
]

describe('the orders that a check explores', () => {
  const runs = process.env['HEDDLE_LONG'] === undefined ? 25 : 150

  test(`are those of ${runs} random programs in real time, each tried with every duration`, async () => {
    const random = new Random(20)
    const seen = new Set<string>()
    let outcomes = 0
    for (let run = 0; run < runs; run++) {
      const program = chosen[run] ?? randomProgram(random)
      for (const { kind } of program.flat()) seen.add(kind)
      const [found, all] = [await explored(program), enumerated(program)]
      expect([...found].sort(), `program ${run}: ${JSON.stringify(program)}`).toEqual([...all].sort())
      outcomes += all.size
    }
    expect(seen.size, 'every kind of wait was in some program').toBe(9)
    expect(outcomes).toBeGreaterThan(runs * 3)
  })
})
