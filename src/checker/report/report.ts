import { basename } from './paths.ts'
import type { RecordedStep } from './recording.ts'
import { formatSchedule } from '../machine/schedule.ts'
import type { CheckResult } from '../search/search.ts'

const CELL_MAX = 52
const FRAMES_MAX = 7

/**
 * A failure as text: its title, then a column for each thread and a line for each step. Racing steps are
 * marked ▶.
 */
export function formatFailure(result: CheckResult, steps: readonly RecordedStep[], file: string): string {
  const { failure, threads } = result
  if (failure === undefined) return formatSummary(result)
  const schedule = formatSchedule(failure.schedule)
  const lines = [`✗ ${result.name}: ${failure.title}`, ...failure.detail.map(text => `    ${text}`), '']
  // An outcome that no execution reaches has no steps.
  const isShown = failure.kind !== 'unreached-outcome'
  if (isShown) lines.push(...formatColumns(steps, threads))
  if (failure.error instanceof Error && failure.error.stack !== undefined) {
    lines.push('', ...stackOf(failure.error).map(line => `    ${line}`))
  }
  lines.push('')
  if (failure.weak !== true && isShown) {
    lines.push(
      `  schedule: ${schedule === '' ? '(before the first step)' : schedule}`,
      `  replay:   ${replayCommand(result.name, schedule, file)}`,
    )
  }
  lines.push(`  ${searched(result)}`, ...formatOutcomes(result))
  return lines.join('\n')
}

function replayCommand(name: string, schedule: string, file: string): string {
  const inline = `check(${JSON.stringify(name)}, { explorer: 'replay', schedule: '${schedule}' }, …)`
  return file === '' ? inline : `heddle check ${file} --only ${JSON.stringify(name)} --replay '${schedule}'`
}

const MARKS = { passed: '✓', failed: '✗', incomplete: '◐' } as const

/** One line about a search. */
export function formatSummary(result: CheckResult): string {
  return [`${MARKS[result.outcome]} ${result.name}: ${searched(result)}`, ...formatOutcomes(result)].join(
    '\n',
  )
}

/** A line for each outcome, with the number of its executions. */
function formatOutcomes({ outcomes = [] }: CheckResult): string[] {
  const shown = outcomes.slice(0, OUTCOMES_MAX)
  const width = Math.max(...shown.map(({ text }) => text.length))
  const lines = shown.map(
    ({ text, executions }) => `    ${text.padEnd(width)}  ${plural(executions, 'execution')}`,
  )
  const rest = outcomes.length - shown.length
  return rest === 0 ? lines : [...lines, `    and ${plural(rest, 'outcome')} more`]
}

const OUTCOMES_MAX = 40

function searched(result: CheckResult): string {
  const { executions, redundant, steps, seconds, complete, why, probability, explorer, remembered } = result
  const rate = seconds > 0 ? `, ${count(Math.round(steps / seconds))} steps/s` : ''
  const others = redundant > 0 ? ` (and ${count(redundant)} covered by them)` : ''
  const chance =
    probability === undefined
      ? ''
      : `; a bug of the depth asked for is met with probability ≥ ${probability.toPrecision(3)}`
  return `${plural(executions, 'execution')}${others}, ${count(steps)} steps, ${seconds.toFixed(2)} s${rate}; ${
    complete
      ? `complete: every ${explorer === 'weak' ? 'execution that the memory model allows' : 'interleaving'} is covered`
      : `not complete: ${why}`
  }${chance}${remembered === true ? ' (remembered)' : ''}`
}

/** "1 check", "2 checks". */
export function plural(n: number, noun: string): string {
  return `${count(n)} ${noun}${n === 1 ? '' : 's'}`
}

export function count(n: number): string {
  return n.toLocaleString('en-US')
}

function formatColumns(steps: readonly RecordedStep[], threads: readonly string[]): string[] {
  const used = threads.map((_, t) => steps.some(({ thread }) => thread === t))
  const columns = threads.map((_, t) => t).filter(t => used[t] || threads.length <= 4)
  const cells = steps.map(step => cellOf(step))
  const widths = columns.map(t =>
    Math.max(
      threads[t].length + 4,
      ...steps.map((step, i) => (step.thread === t ? Math.min(CELL_MAX, cells[i].length) : 0)),
    ),
  )
  const number = String(steps.length).length
  const header = columns.map((t, c) => `${t}: ${threads[t]}`.padEnd(widths[c])).join(' │ ')
  const rule = columns.map((_, c) => '─'.repeat(widths[c])).join('─┼─')
  const lines = [`  ${' '.repeat(number)}   ${header} │ where`, `  ${'─'.repeat(number)}───${rule}─┼──────`]
  let left = 0
  steps.forEach((step, i) => {
    if (steps.length > STEPS_SHOWN && !isShown(steps, i)) {
      left++
      return
    }
    if (left > 0) lines.push(`  ${'…'.padStart(number)}   ${plural(left, 'step')} left out; --json has all`)
    left = 0
    const row = columns.map((t, c) => (step.thread === t ? clip(cells[i]) : '').padEnd(widths[c])).join(' │ ')
    const where = step.line > 0 ? `${basename(step.file)}:${step.line}` : ''
    lines.push(`  ${String(i + 1).padStart(number)} ${step.marked ? '▶' : ' '} ${row} │ ${where}`)
  })
  return lines
}

/** Longer executions are shown in part. */
const STEPS_SHOWN = 300

/** Whether a step is among the first or last ones, or near a marked one. */
function isShown(steps: readonly RecordedStep[], i: number): boolean {
  if (i < 80 || i >= steps.length - 120) return true
  return steps.slice(i - 10, i + 11).some(({ marked }) => marked)
}

function cellOf(step: RecordedStep): string {
  return [step.kind, step.target, step.effect].filter(text => text !== '').join(' ')
}

function clip(text: string): string {
  return text.length > CELL_MAX ? `${text.slice(0, CELL_MAX - 1)}…` : text
}

/** A frame of the built package, where a layer is one or two files. */
const PACKED = /\/dist\/(?:(?:checker|compiler|coroutine|cli)\/(?:[\w/]+\/)?)(?:chunk|packages|node)\.js/

/** The whole message, which may be a report of many lines, and the frames that are not the checker's own. */
function stackOf(error: Error): string[] {
  const lines = (error.stack ?? '').split('\n')
  const frame = lines.findIndex(line => /^ {4}at /.test(line))
  const message = frame === -1 ? lines : lines.slice(0, frame)
  const frames = lines
    .slice(message.length)
    .filter(
      line =>
        !/\/checker\/((?:async|weak|machine|search|spec|report|run)\/\w+|check)\.|\/cli\/check\.[jt]s|\/commander\/|node:internal|node:vm|evalmachine|\.next \(<anonymous>/.test(
          line,
        ) && !PACKED.test(line),
    )
    // The checker's form of a method has a name of its own.
    .map(line => line.replace(/\[heddle\.method\.\d+\]/, '<method>'))
  return [...message, ...frames.slice(0, FRAMES_MAX)]
}

/** A result as plain data, for other programs. */
export function toJson(
  result: CheckResult,
  steps: readonly RecordedStep[],
  file: string,
): Record<string, unknown> {
  const { failure, ...rest } = result
  return {
    ...rest,
    file,
    failure:
      failure === undefined
        ? null
        : {
            kind: failure.kind,
            title: failure.title,
            detail: failure.detail,
            schedule: formatSchedule(failure.schedule),
            crashes: failure.schedule.crashes,
            marked: failure.marked,
            weak: failure.weak === true,
            error: failure.error instanceof Error ? failure.error.stack : undefined,
            steps,
          },
  }
}

/** A failing execution in the trace event format: a track for each thread, a step every microsecond. */
export function toTimeline(result: CheckResult, steps: readonly RecordedStep[]): { traceEvents: unknown[] } {
  const traceEvents: unknown[] = [
    { ph: 'M', pid: 1, name: 'process_name', args: { name: result.name } },
    ...result.threads.map((name, tid) => ({ ph: 'M', pid: 1, tid, name: 'thread_name', args: { name } })),
  ]
  steps.forEach((step, ts) => {
    traceEvents.push({
      ph: 'X',
      pid: 1,
      tid: step.thread,
      ts,
      dur: 1,
      name: cellOf(step),
      cat: step.marked ? 'marked' : 'step',
      ...(step.marked ? { cname: 'terrible' } : {}),
      args: { where: `${step.file}:${step.line}:${step.column}`, text: step.text, step: ts + 1 },
    })
  })
  if (result.failure !== undefined) {
    const last = steps.at(-1)
    traceEvents.push({
      ph: 'i',
      pid: 1,
      tid: last?.thread ?? 0,
      ts: steps.length,
      s: 'p',
      name: result.failure.title,
      cat: result.failure.kind,
    })
  }
  return { traceEvents }
}
