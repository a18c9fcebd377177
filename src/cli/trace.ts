/** `heddle trace`: converts and summarises trace files. */
import { closeSync, openSync, readFileSync, statSync, writeSync } from 'node:fs'
import { Command, Option } from 'commander'
import { ChromeWriter } from '../trace/chrome.ts'
import { readPerfetto } from '../trace/perfetto.ts'
import { Summary } from '../trace/summary.ts'
import { CommandError, EXIT_USAGE, fileError, guarded, type Output, streams } from './failure.ts'
import { wholeNumber } from './numbers.ts'
import { bar, formatMs, paint, table, type Terminal, terminalOf } from './terminal.ts'

interface SummaryFlags {
  json?: boolean
  top?: number
}

interface ConvertFlags {
  to?: 'chrome'
  json?: boolean
}

export function traceCommand(): Command {
  const trace = new Command('trace')
    .summary('convert and summarise traces of heddle run --trace')
    .description('Converts and summarises traces that `heddle run --trace` wrote.')
  trace
    .command('convert')
    .description("Writes a trace as JSON for Chrome's DevTools (Performance panel, Load profile).")
    .argument('<file>', 'a trace, as in out.pftrace')
    .argument('[output]', 'where to; - for standard output', '-')
    .addOption(new Option('--to <format>', 'which format').choices(['chrome']).default('chrome'))
    .option('--json', 'with an output: print one JSON object about the file that was written')
    .addHelpText('after', '\nExample:\n  heddle trace convert out.pftrace out.json')
    .action((file: string, output: string, flags: ConvertFlags) =>
      guarded('trace convert', flags, () => convert(file, output, streams, flags)),
    )
  trace
    .command('summarise')
    .alias('summarize')
    .description(
      'Prints which tasks ran, which task waited for which and how long, and the ten longest inversions.',
    )
    .argument('<file>', 'a trace, as in out.pftrace')
    .option('--json', 'print one JSON object')
    .option('--top <n>', 'how many tasks and waits to list', wholeNumber, 20)
    .addHelpText('after', '\nExample:\n  heddle trace summarise out.pftrace')
    .action((file: string, flags: SummaryFlags) =>
      guarded('trace summarise', flags, () => summarise(file, flags, streams, terminalOf(process.stdout))),
    )
  return trace
}

function load(file: string): Uint8Array {
  try {
    return readFileSync(file)
  } catch (error) {
    throw fileError(file, error, 'read')
  }
}

function read(file: string, into: Parameters<typeof readPerfetto>[1]): void {
  const bytes = load(file)
  try {
    readPerfetto(bytes, into)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    throw new CommandError(`${file} is ${error.message}`, {
      hint: 'name a file that heddle run --trace wrote',
    })
  }
}

function convert(
  file: string,
  output: string,
  { out }: Output,
  { to: format = 'chrome', json = false }: ConvertFlags = {},
): void {
  if (output === '-') {
    if (json) {
      throw new CommandError('with --json the converted trace cannot go to standard output', {
        exitCode: EXIT_USAGE,
        hint: 'name a file for the trace, as in out.json',
      })
    }
    read(file, new ChromeWriter(out))
    return
  }
  // Before the output is opened: a missing input must not leave an empty file.
  const summary = new Summary()
  read(file, summary)
  let to: number
  try {
    to = openSync(output, 'w')
  } catch (error) {
    throw fileError(output, error, 'written')
  }
  try {
    read(file, new ChromeWriter(text => void writeSync(to, text)))
  } finally {
    closeSync(to)
  }
  if (!json) return
  const { events, lostEvents } = summary
  const { size: bytes } = statSync(output)
  out(`${JSON.stringify({ file, output, format, events, lostEvents, bytes })}\n`)
}

function summarise(file: string, flags: SummaryFlags, { out }: Output, terminal: Terminal): void {
  const summary = new Summary()
  read(file, summary)
  const { tasks, cpus, waits, locks, inversions, lostEvents, first, last } = summary
  if (flags.json) {
    const nanoseconds = summary.events === 0 ? 0 : last - first
    out(
      `${JSON.stringify({ file, nanoseconds, lostEvents, cpus, tasks, waits, locks, inversions }, null, 2)}\n`,
    )
    return
  }
  out(`${describeSummary(summary, flags.top ?? 20, terminal).join('\n')}\n`)
}

const ms = (nanoseconds: number): string => formatMs(nanoseconds / 1e6)

export function describeSummary(summary: Summary, top: number, terminal: Terminal): string[] {
  const { tasks, cpus, waits, locks, inversions, lostEvents, first, last } = summary
  const span = Math.max(1, last - first)
  const title = (text: string): string => paint(terminal, 'bold', text)
  const count = (n: number, noun: string): string => `${n} ${noun}${n === 1 ? '' : 's'}`
  const lines = [`${ms(span)}, ${count(tasks.length, 'task')} on ${count(cpus.length, 'CPU')}`]
  if (lostEvents > 0)
    lines.push(
      paint(terminal, 'yellow', `events are missing: the rings were full ${lostEvents} times or more`),
    )
  lines.push('', title('CPU time'))
  for (const { name, busy, slices } of cpus) {
    const share = busy / span
    lines.push(
      `${name}  ${bar(terminal, share, 20)} ${(share * 100).toFixed(0).padStart(3)} %  ${slices} slices`,
    )
  }
  const listed = tasks.slice(0, top)
  lines.push(
    '',
    ...table([
      ['task', 'ran', 'waited for a CPU', 'blocked', 'stopped', 'switches'],
      ...listed.map(task => [
        task.name,
        ms(task.running),
        ms(task.runnable),
        ms(task.blocked),
        ms(task.stopped),
        task.switches,
      ]),
    ]),
  )
  if (tasks.length > listed.length) lines.push(`and ${tasks.length - listed.length} more`)
  lines.push('', title('Waits of one task for another'))
  if (waits.length === 0) lines.push('no task waited for a lock of another task')
  else
    lines.push(
      ...table([
        ['waiter', 'waited for', 'times', 'in all', 'longest'],
        ...waits
          .slice(0, top)
          .map(wait => [wait.waiter, wait.for, wait.count, ms(wait.total), ms(wait.longest)]),
      ]),
    )
  if (locks.length > 0)
    lines.push(
      '',
      title('Contended locks'),
      ...table([
        ['lock', 'contended', 'acquired after a wait', 'handed over'],
        ...locks.slice(0, top).map(one => [one.lock, one.contended, one.acquired, one.handedOver]),
      ]),
    )
  lines.push('', title('Longest inversions'))
  if (inversions.length === 0) lines.push('no task waited for a less important one')
  else
    lines.push(
      ...table([
        ['waiter', 'priority', 'owner', 'priority', 'for', 'at'],
        ...inversions.map(one => [
          one.waiter,
          one.waiterPriority,
          one.owner,
          one.ownerPriority,
          ms(one.duration),
          ms(one.start - first),
        ]),
      ]),
    )
  return lines
}
