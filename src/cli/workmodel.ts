import type { RunStatus } from '../durable/states.ts'
import type { Activity } from '../durable/worker/activity.ts'
import { checkpointText, oneLine, progressBar } from './runtexts.ts'
import { fit, formatMs, paint, type Terminal } from './terminal.ts'

/** What a worker has done since it began, for its display. */
export interface WorkModel {
  readonly title: string
  readonly concurrency: number
  readonly counts: Record<Activity['kind'], number>
  /** The runs that it has, by id, with the time at which it claimed them. */
  readonly running: Map<string, { readonly name: string; readonly since: number }>
  /** The rows of running runs, as they were last read. */
  rows: ReadonlyMap<string, RunStatus>
  /** The last lines of its log. */
  readonly last: string[]
}

const LAST_MAX = 4

export function newWorkModel(title: string, concurrency: number): WorkModel {
  const counts = {
    claimed: 0,
    completed: 0,
    failed: 0,
    cancelled: 0,
    asleep: 0,
    waiting: 0,
    blocked: 0,
    released: 0,
    error: 0,
    lost: 0,
  }
  return { title, concurrency, counts, running: new Map(), rows: new Map(), last: [] }
}

/** Takes an activity into the model. Returns for how many milliseconds the worker has had the run. */
export function account(model: WorkModel, activity: Activity, now: number): number {
  const { kind, run, name } = activity
  model.counts[kind]++
  if (kind === 'claimed') {
    model.running.set(run, { name, since: now })
    return 0
  }
  const since = model.running.get(run)?.since ?? now
  model.running.delete(run)
  return now - since
}

/** An activity as a line of a log. `ms`: how long the worker has had the run. */
export function activityLine({ run, name, kind, epoch, hasImage, why }: Activity, ms: number): string {
  const title = run.startsWith(name) ? run : `${run} (${name})`
  return oneLine(`${title}: ${activityText()}`)

  function activityText(): string {
    const place = hasImage ? 'its checkpoint' : 'its start'
    switch (kind) {
      case 'claimed':
        return epoch === 1 && !hasImage ? 'begins' : `goes on from ${place}, claim ${epoch}`
      case 'completed':
        return `completed after ${formatMs(ms)} here`
      case 'failed':
        return `failed: ${why ?? 'without a reason'}`
      case 'cancelled':
        return `cancelled: ${why ?? 'without a reason'}`
      case 'error':
        return `error: ${why ?? ''}; it is tried again from ${place}`
      case 'asleep':
        return 'sleeps'
      case 'waiting':
        return 'waits for a message'
      case 'blocked':
        return `is left for another worker: ${why ?? ''}`
      case 'released':
        return `released, goes on from ${place}`
      case 'lost':
        return `lost: ${why ?? ''}`
    }
  }
}

/** What has become of all runs, as in `12 completed, 1 failed`. */
export function countsText({ counts }: WorkModel): string {
  const texts: readonly (readonly [number, string])[] = [
    [counts.completed, 'completed'],
    [counts.failed, 'failed'],
    [counts.cancelled, 'cancelled'],
    [counts.error, 'to be tried again'],
    [counts.asleep + counts.waiting, 'asleep or waiting'],
    [counts.blocked, 'left for other workers'],
    [counts.released, 'released'],
    [counts.lost, 'lost'],
  ]
  const shown = texts.filter(([count]) => count > 0).map(([count, text]) => `${count} ${text}`)
  return shown.length === 0 ? 'no run has ended' : shown.join(', ')
}

export function addLine(model: WorkModel, line: string): void {
  model.last.push(line)
  if (model.last.length > LAST_MAX) model.last.shift()
}

const NAME_WIDTH = 28

/** The display: at most as many lines as the terminal has rows, none wider than the terminal. */
export function drawWork(model: WorkModel, terminal: Terminal, now: number): string[] {
  const { columns, rows: height } = terminal
  const { running, concurrency } = model
  const head = [
    paint(terminal, 'bold', fit(terminal, model.title, columns)),
    fit(terminal, `${running.size} of ${concurrency} running; ${countsText(model)}`, columns),
    '',
  ]
  const foot = [
    '',
    ...model.last.map(line => paint(terminal, 'dim', fit(terminal, line, columns))),
    paint(terminal, 'dim', fit(terminal, 'Ctrl-C releases the runs and ends; twice ends at once', columns)),
  ]
  const room = Math.max(1, height - head.length - foot.length - 1)
  const all = [...running]
  const isCut = all.length > room
  const shown = all.slice(0, isCut ? room - 1 : room)
  const barWidth = Math.max(12, Math.min(40, columns - NAME_WIDTH - 42))
  const body = shown.map(([id, { since }]) => {
    const row = model.rows.get(id)
    const name = fit(terminal, oneLine(id), NAME_WIDTH).padEnd(NAME_WIDTH)
    const time = formatMs(now - since).padStart(8)
    const progress = progressBar(terminal, row?.progress, barWidth).padEnd(barWidth)
    const checkpoint = row === undefined ? '' : checkpointText(row)
    return fit(terminal, `${name} ${time}  ${progress}  ${checkpoint}`.trimEnd(), columns)
  })
  if (isCut) body.push(`and ${all.length - shown.length} more`)
  if (all.length === 0) body.push('waits for runs')
  return [...head, ...body, ...foot]
}
