import { describe, expect, test } from 'vitest'
import { type History, mistakesIn, type Plan, type Started } from './history.ts'

const plan: Plan = {
  id: 'a',
  start: 1,
  steps: [
    { kind: 'once', key: 'k0' },
    { kind: 'receive', name: 'left' },
    { kind: 'once', key: 'k2' },
    { kind: 'receive', name: 'left' },
  ],
  fails: false,
  retries: 0,
}

/** Two attempts: the first one died after its first effect, and before the result was stored. */
const right: History = {
  started: [
    {
      plan,
      sum: 7,
      sent: [
        { name: 'left', value: 1 },
        { name: 'left', value: 2 },
      ],
      cancel: null,
    },
  ],
  runs: [
    {
      id: 'a',
      state: 'completed',
      epoch: 2,
      attempts: 2,
      failures: 0,
      result: { sum: 7, saw: ['y', 'z'], got: [1, 2] },
      error: null,
    },
  ],
  events: [
    { run: 'a', kind: 'queued', epoch: 0 },
    { run: 'a', kind: 'claimed', epoch: 1 },
    { run: 'a', kind: 'message', epoch: 1 },
    { run: 'a', kind: 'claimed', epoch: 2 },
    { run: 'a', kind: 'refused', epoch: 1 },
    { run: 'a', kind: 'checkpoint', epoch: 2 },
    { run: 'a', kind: 'completed', epoch: 2 },
    { run: 'a', kind: 'message', epoch: 2 },
  ],
  effects: [
    { run: 'a', key: 'k0', value: 'x', saw: [] },
    { run: 'a', key: 'k0', value: 'y', saw: [] },
    { run: 'a', key: 'k2', value: 'z', saw: ['y'] },
  ],
  journal: [
    { run: 'a', key: 'k0', value: 'y' },
    { run: 'a', key: 'k2', value: 'z' },
  ],
  images: [],
  jobs: [],
  messages: [
    { run: 'a', isTaken: true },
    { run: 'a', isTaken: true },
  ],
}

const found = (history: History): readonly string[] => mistakesIn(history).map(({ what }) => what)
const [run] = right.runs as [History['runs'][number]]
const [started] = right.started as [Started]
const withRun = (change: Partial<typeof run>): History => ({ ...right, runs: [{ ...run, ...change }] })
const withStarted = (change: Partial<Started>): History => ({
  ...right,
  started: [{ ...started, ...change }],
})
/** The entry at `at` is replaced by others. */
const withEvents = (at: number, ...events: readonly Omit<History['events'][number], 'run'>[]): History => ({
  ...right,
  events: right.events.toSpliced(at, 1, ...events.map(event => ({ run: 'a', ...event }))),
})
const claimed = (epoch: number): { kind: string; epoch: number } => ({ kind: 'claimed', epoch })

test('a right history has no mistakes', () => {
  expect(found(right)).toEqual([])
})

test('a run that failed as often as it may, and a cancelled one, are right', () => {
  const failing = { ...plan, steps: [], fails: true, retries: 1 }
  const rest = { effects: [], journal: [], messages: [] }
  expect(
    found({
      ...withEvents(6, { kind: 'failed', epoch: 2 }),
      ...rest,
      started: [{ plan: failing, sum: 7, sent: [], cancel: null }],
      runs: [{ ...run, state: 'failed', failures: 2, result: null, error: 'the sum is 7' }],
      images: ['a'],
    }),
  ).toEqual([])
  expect(
    found({
      ...withEvents(6, { kind: 'cancelled', epoch: 2 }),
      effects: [],
      journal: [],
      started: [{ ...started, cancel: 'running' }],
      runs: [{ ...run, state: 'cancelled', result: null }],
    }),
  ).toEqual([])
})

describe('a wrong history is found:', () => {
  const wrong: readonly (readonly [string, History, string])[] = [
    ['a lost run', { ...right, runs: [] }, 'it is lost'],
    ['an unknown run', { ...right, runs: [run, { ...run, id: 'b' }] }, 'nobody started it'],
    ['a stuck run', withRun({ state: 'running' }), 'it is stuck: running, without a job'],
    [
      'a stuck run with a job',
      { ...withRun({ state: 'asleep' }), jobs: ['a'] },
      'it is stuck: asleep, with a job',
    ],
    ['a job that is left over', { ...right, jobs: ['a'] }, 'it has ended and has a job'],
    ['an image that is left over', { ...right, images: ['a'] }, 'it has ended and has an image'],
    ['another result', withRun({ result: { ...run.result!, sum: 8 } }), 'sum 8, where plain code has 7'],
    [
      'an end that plain code has not',
      { ...withRun({ state: 'failed', error: 'lost' }), images: [] },
      'failed (lost), where plain code has completed',
    ],
    [
      'a failure',
      withRun({ failures: 1, error: 'TypeError: no' }),
      '1 failures of code that does not fail, the last one: TypeError: no',
    ],
    [
      'a run that completes where its code fails',
      withStarted({ plan: { ...plan, fails: true } }),
      'completed (null), where plain code has failed',
    ],
    ['a cancelled run that goes on', withStarted({ cancel: 'cancelled' }), 'cancelled, and then completed'],
    [
      'a cancellation that nobody asked for',
      withRun({ state: 'cancelled', result: null }),
      'cancelled by nobody',
    ],
    ['two outcomes', withEvents(6, right.events[6]!, right.events[6]!), '2 outcomes'],
    ['no outcome', withEvents(6), '0 outcomes'],
    [
      'a claim after the end',
      { ...withEvents(7, claimed(3)), runs: [{ ...run, epoch: 3, attempts: 3 }] },
      "'claimed' after its end",
    ],
    ['an epoch twice', withEvents(3, claimed(1)), 'claimed with epoch 1 after epoch 1'],
    [
      'an epoch that nobody has',
      { ...withEvents(3, claimed(3)), runs: [{ ...run, epoch: 3, attempts: 3 }] },
      'claimed with epoch 3 after epoch 1',
    ],
    [
      'a write of a zombie',
      withEvents(5, { kind: 'checkpoint', epoch: 1 }),
      "'checkpoint' of epoch 1 in epoch 2",
    ],
    [
      'a claim without history',
      withRun({ epoch: 3, attempts: 3 }),
      'epoch 3 in its row, and 2 in its last claim',
    ],
    ['an attempt too many', withRun({ attempts: 3 }), '3 attempts in epoch 2'],
    ['no effect', { ...right, effects: right.effects.slice(0, 2) }, "once('k2') had no effect"],
    ['no stored result', { ...right, journal: right.journal.slice(0, 1) }, "once('k2') has no result"],
    [
      'an invented result',
      { ...right, journal: [{ run: 'a', key: 'k0', value: 'q' }, right.journal[1]!] },
      "once('k0') has a result that no effect returned",
    ],
    [
      'an attempt that saw another result',
      { ...right, effects: [...right.effects, { run: 'a', key: 'k2', value: 'w', saw: ['x'] }] },
      "an attempt at once('k2') saw other results before",
    ],
    [
      'a key that the code has not',
      { ...right, effects: [...right.effects, { run: 'a', key: 'k9', value: 'w', saw: [] }] },
      "an effect of unknown key 'k9'",
    ],
    [
      'a result of once that changed',
      withRun({ result: { ...run.result!, saw: ['x', 'z'] } }),
      'its result has other results of once',
    ],
    [
      'a message twice',
      withRun({ result: { ...run.result!, got: [1, 1] } }),
      'received [1,1], where [1,2] was sent',
    ],
    [
      'messages in another order',
      withRun({ result: { ...run.result!, got: [2, 1] } }),
      'received [2,1], where [1,2] was sent',
    ],
    ['a lost message', { ...right, messages: right.messages.slice(1) }, '1 messages, where 2 were sent'],
    [
      'a message that is left over',
      { ...right, messages: [right.messages[0]!, { run: 'a', isTaken: false }] },
      '1 messages taken in 2 waits',
    ],
  ]
  test.each(wrong)('%s', (_, history, mistake) => {
    expect(found(history)).toContain(mistake)
  })
})
