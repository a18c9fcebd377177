/**
 * The history of many durable runs, and the mistakes in it. A history is rows alone, so that tests can give
 * wrong ones.
 */
export type Step =
  | { readonly kind: 'compute'; readonly turns: number }
  | { readonly kind: 'sleep'; readonly ms: number }
  | { readonly kind: 'once'; readonly key: string }
  | { readonly kind: 'receive'; readonly name: string }

/** What a run does. */
export interface Plan {
  readonly id: string
  readonly start: number
  readonly steps: readonly Step[]
  /** It throws at its end, each time. */
  readonly fails: boolean
  readonly retries: number
}

export interface Result {
  readonly sum: number
  readonly saw: readonly string[]
  readonly got: readonly unknown[]
}

/** A run that was started: its plan, and all that was done to it. */
export interface Started {
  readonly plan: Plan
  /** The sum that plain code computes. */
  readonly sum: number
  /** The messages in the order of `send`. */
  readonly sent: readonly { readonly name: string; readonly value: unknown }[]
  /** What `cancel` answered; null: it was not called. */
  readonly cancel: string | null
}

export interface RunRow {
  readonly id: string
  readonly state: string
  readonly epoch: number
  readonly attempts: number
  readonly failures: number
  /** The decoded outcome; null: there is none. */
  readonly result: Result | null
  /** Of its outcome, or else of the last attempt that failed. */
  readonly error: string | null
}

export interface EventRow {
  readonly run: string
  readonly kind: string
  readonly epoch: number
}

export interface EffectRow {
  readonly run: string
  readonly key: string
  readonly value: string
  /** The results of the run's `once` calls before this one, as that attempt saw them. */
  readonly saw: readonly string[]
}

/** Rows in the order in which they were written. */
export interface History {
  readonly started: readonly Started[]
  readonly runs: readonly RunRow[]
  readonly events: readonly EventRow[]
  readonly effects: readonly EffectRow[]
  /** Results of `once`. */
  readonly journal: readonly { readonly run: string; readonly key: string; readonly value: unknown }[]
  /** Runs that have an image. */
  readonly images: readonly string[]
  /** Runs of the jobs that workers may still claim, or have. */
  readonly jobs: readonly string[]
  readonly messages: readonly { readonly run: string; readonly isTaken: boolean }[]
}

export interface Mistake {
  readonly run: string
  readonly what: string
}

const ended = ['completed', 'failed', 'cancelled']
/** Entries that are written without the lock of the row of the run: a claim may come between. */
const unlocked = ['refused']

/** Everything that no history may have. */
export function mistakesIn(history: History): readonly Mistake[] {
  const found: Mistake[] = []
  const rows = new Map(history.runs.map(row => [row.id, row]))
  const known = new Set(history.started.map(({ plan }) => plan.id))
  for (const { id } of history.runs) if (!known.has(id)) found.push({ run: id, what: 'nobody started it' })
  const eventsOf = grouped(history.events)
  const effectsOf = grouped(history.effects)
  const journalOf = grouped(history.journal)
  const messagesOf = grouped(history.messages)
  const images = new Set(history.images)
  const jobs = new Set(history.jobs)
  for (const started of history.started) {
    const run = started.plan.id
    const row = rows.get(run)
    const wrong = (what: string): void => void found.push({ run, what })
    if (row === undefined) {
      wrong('it is lost')
      continue
    }
    if (!ended.includes(row.state)) {
      wrong(`it is stuck: ${row.state}, ${jobs.has(run) ? 'with' : 'without'} a job`)
      continue
    }
    if (jobs.has(run)) wrong('it has ended and has a job')
    if (images.has(run) && row.state !== 'failed') wrong('it has ended and has an image')
    for (const what of [
      ...wrongEnd(started, row),
      ...wrongEvents(row, eventsOf.get(run) ?? []),
      ...wrongEffects(started, row, effectsOf.get(run) ?? [], journalOf.get(run) ?? []),
      ...wrongMessages(started, row, messagesOf.get(run) ?? []),
    ])
      wrong(what)
  }
  return found
}

/** How it has ended, and its result: that of plain code. */
function* wrongEnd({ plan, sum, cancel }: Started, row: RunRow): Iterable<string> {
  if (cancel === 'cancelled' && row.state !== 'cancelled') yield `cancelled, and then ${row.state}`
  if (cancel === null && row.state === 'cancelled') yield 'cancelled by nobody'
  if (row.state === 'cancelled') {
    if (row.result !== null) yield 'cancelled with a result'
    return
  }
  const state = plan.fails ? 'failed' : 'completed'
  if (row.state !== state) yield `${row.state} (${row.error}), where plain code has ${state}`
  else if (plan.fails) {
    if (row.error !== `the sum is ${sum}`) yield `error '${row.error}', where plain code has sum ${sum}`
    if (row.failures !== plan.retries + 1) yield `${row.failures} failures with ${plan.retries} retries`
  } else {
    if (row.result?.sum !== sum) yield `sum ${row.result?.sum}, where plain code has ${sum}`
    if (row.failures !== 0)
      yield `${row.failures} failures of code that does not fail, the last one: ${row.error}`
  }
}

/** One outcome; each claim has the epoch after that of the claim before, and nothing is written between. */
function* wrongEvents(row: RunRow, events: readonly EventRow[]): Iterable<string> {
  let epoch = 0
  let ends = 0
  for (const { kind, epoch: its } of events) {
    if (unlocked.includes(kind)) continue
    if (kind === 'claimed') {
      if (its !== epoch + 1) yield `claimed with epoch ${its} after epoch ${epoch}`
      epoch = its
    } else if (its !== epoch) yield `'${kind}' of epoch ${its} in epoch ${epoch}`
    if (ends > 0 && kind !== 'message') yield `'${kind}' after its end`
    if (ended.includes(kind)) ends++
  }
  if (ends !== 1) yield `${ends} outcomes`
  if (row.epoch !== epoch) yield `epoch ${row.epoch} in its row, and ${epoch} in its last claim`
  if (row.attempts !== row.epoch) yield `${row.attempts} attempts in epoch ${row.epoch}`
}

/** Each key has its effect at least once, and one result, which every attempt saw. */
function* wrongEffects(
  { plan }: Started,
  row: RunRow,
  effects: readonly EffectRow[],
  journal: History['journal'],
): Iterable<string> {
  const keys = plan.steps.flatMap(step => (step.kind === 'once' ? [step.key] : []))
  const stored = new Map(journal.map(({ key, value }) => [key, value]))
  const isWhole = row.state !== 'cancelled'
  for (const key of keys) {
    const made = effects.filter(effect => effect.key === key)
    const value = stored.get(key)
    if (made.length === 0 && (isWhole || value !== undefined)) yield `once('${key}') had no effect`
    if (value === undefined && isWhole) yield `once('${key}') has no result`
    if (value !== undefined && !made.some(effect => effect.value === value))
      yield `once('${key}') has a result that no effect returned`
  }
  const results = keys.map(key => stored.get(key))
  for (const { key, saw } of effects) {
    const at = keys.indexOf(key)
    if (at < 0) yield `an effect of unknown key '${key}'`
    else if (!equal(saw, results.slice(0, at))) yield `an attempt at once('${key}') saw other results before`
  }
  if (row.result !== null && !equal(row.result.saw, results)) yield 'its result has other results of once'
}

/** Each message is received once, in the order of its name. */
function* wrongMessages(
  { plan, sent }: Started,
  row: RunRow,
  messages: History['messages'],
): Iterable<string> {
  if (messages.length !== sent.length) yield `${messages.length} messages, where ${sent.length} were sent`
  if (row.state === 'cancelled') return
  const queues = new Map<string, unknown[]>()
  for (const { name, value } of sent) queues.set(name, [...(queues.get(name) ?? []), value])
  const expected = plan.steps.flatMap(step =>
    step.kind === 'receive' ? [queues.get(step.name)?.shift()] : [],
  )
  const taken = messages.filter(({ isTaken }) => isTaken).length
  if (taken !== expected.length) yield `${taken} messages taken in ${expected.length} waits`
  if (row.result !== null && !equal(row.result.got, expected))
    yield `received ${JSON.stringify(row.result.got)}, where ${JSON.stringify(expected)} was sent`
}

function grouped<T extends { readonly run: string }>(rows: readonly T[]): ReadonlyMap<string, readonly T[]> {
  const groups = new Map<string, T[]>()
  for (const row of rows) {
    const group = groups.get(row.run)
    if (group === undefined) groups.set(row.run, [row])
    else group.push(row)
  }
  return groups
}

function equal(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}
