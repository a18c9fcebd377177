/** `heddle runs`: lists, shows, cancels, retries and exports durable runs, and sends them messages. */
import { Command, InvalidArgumentError, Option } from 'commander'
import type { Durable } from '../durable/durable.ts'
import { RunEndedError, RunMissingError } from '../durable/errors.ts'
import { checkQueue } from '../durable/options.ts'
import { decodeValue } from '../durable/outcome.ts'
import { type RunEvent, type RunState, runStates, type RunStatus } from '../durable/states.ts'
import { eventOf, statusOf } from '../durable/status.ts'
import { CommandError, EXIT_USAGE, guarded } from './failure.ts'
import { wholeNumber } from './numbers.ts'
import {
  type DatabaseFlags,
  databaseError,
  databaseHelp,
  folderHelp,
  openRuns,
  placeOf,
} from './runsdatabase.ts'
import { ageText, bytesText, errorLine, jsonOf, noteOf, oneLine, stateText, timeText } from './runtexts.ts'
import { fit, paint, table, type Terminal, terminalOf } from './terminal.ts'

interface RunsFlags extends DatabaseFlags {
  state?: RunState[]
  queue?: string
  limit?: number
  json?: boolean
  reason?: string
  from?: 'checkpoint' | 'start'
}

export function runsCommand(): Command {
  const runs = new Command('runs')
    .summary('list durable runs; show, cancel, retry and export them')
    .description('Lists the durable runs of a database, the newest first.')
    // A misspelt command arrives here.
    .argument('[command]')
    .usage('[options] [command]')
    .enablePositionalOptions()
    .addHelpText(
      'after',
      '\nExamples:\n  heddle runs --state failed\n  heddle runs show sim-42\n  heddle runs retry sim-42\n  heddle runs send sim-42 approval \'{"by":"ann"}\'\n  heddle runs export > runs.jsonl',
    )
  withFilter(runs).action((id: string | undefined, _: object, command: Command) => {
    if (id !== undefined) return refuseWord(id, command)
    return guardedRuns('', command, list)
  })
  const add = (name: string, summary: string, json: string): Command =>
    withDatabase(
      runs
        .command(name)
        .summary(summary)
        .description(`${summary[0]!.toUpperCase()}${summary.slice(1)}.`),
      json,
    )
  withFilter(runs.command('list').summary('list runs, as heddle runs alone does')).action(
    (_: object, command: Command) => guardedRuns('list', command, list),
  )
  add(
    'show',
    'show one run: its state, attempts, errors, checkpoint, progress and history',
    'print one JSON object',
  )
    .argument('<id>', 'the id of a run')
    .action((id: string, _: object, command: Command) =>
      guardedRuns('show', command, (durable, flags) => show(durable, id, flags)),
    )
  add(
    'cancel',
    'cancel a run that has not ended; a running one is killed within a heartbeat',
    'print one JSON object',
  )
    .argument('<id>', 'the id of a run')
    .option('--reason <text>', 'the run ends with it', 'cancelled by heddle runs')
    .action((id: string, _: object, command: Command) =>
      guardedRuns('cancel', command, (durable, flags) => cancel(durable, id, flags)),
    )
  add('retry', 'queue a run again that failed or was cancelled', 'print one JSON object')
    .argument('<id>', 'the id of a run')
    .addOption(
      new Option('--from <place>', 'where it begins')
        .choices(['checkpoint', 'start'])
        .default('checkpoint', 'its last checkpoint'),
    )
    .action((id: string, _: object, command: Command) =>
      guardedRuns('retry', command, (durable, flags) => retry(durable, id, flags)),
    )
  add('send', 'send a message to a run, which takes it by receive(name)', 'print one JSON object')
    .argument('<id>', 'the id of a run')
    .argument('<name>', 'the name of the message')
    .argument('<json>', 'its value')
    .action((id: string, name: string, json: string, _: object, command: Command) =>
      guardedRuns(
        'send',
        command,
        (durable, flags) => send(durable, id, name, json, flags),
        () => messageOf(json),
      ),
    )
  add(
    'export',
    'print all runs with their arguments, results and history, one JSON object a line',
    'the same',
  ).action((_: object, command: Command) => guardedRuns('export', command, exportRuns))
  return runs
}

function withFilter(command: Command): Command {
  command
    .option('--state <states>', `only runs in these states: ${runStates.join(', ')}`, states)
    .option('--queue <name>', 'only runs of this queue', queueName)
    .option('--limit <n>', 'at most so many (default: 50)', limit)
  return withDatabase(command, 'print one JSON array')
}

function withDatabase(command: Command, json: string): Command {
  return command
    .option('--database <url>', databaseHelp)
    .option('--folder <dir>', folderHelp)
    .option('--json', json)
}

/** `heddle runs sim-42` */
function refuseWord(word: string, command: Command): void {
  const known = command.commands.map(one => one.name())
  new CommandError(`'${word}' is not a command of heddle runs`, {
    exitCode: EXIT_USAGE,
    hint: `heddle runs show ${word} shows a run of this id; the commands are ${known.join(', ')}`,
  }).end('runs', (command.opts() as RunsFlags).json)
}

/** `early` checks arguments before the database is opened. */
async function guardedRuns(
  name: string,
  command: Command,
  action: (durable: Durable, flags: RunsFlags) => Promise<void>,
  early: () => void = () => undefined,
): Promise<void> {
  // Options may stand before the subcommand, too.
  const flags = { ...command.parent?.opts(), ...command.opts() } as RunsFlags
  await guarded(name === '' ? 'runs' : `runs ${name}`, flags, async () => {
    early()
    const place = placeOf(flags)
    const durable = await openRuns(place)
    try {
      await action(durable, flags)
    } catch (error) {
      if (error instanceof RunMissingError) {
        throw new CommandError(`there is no run '${error.run}' in ${place.text}`, {
          hint: 'heddle runs lists them; runs that ended are kept for 30 days by default',
        })
      }
      if (error instanceof RunEndedError) {
        throw new CommandError(`run ${error.run} has completed, and receives no message`, {
          hint: 'send it before the run ends, or to another run',
        })
      }
      throw databaseError(place, error)
    } finally {
      await durable.close()
    }
  })
}

function print(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`)
}

async function list(durable: Durable, { state, queue, limit: most = 50, json }: RunsFlags): Promise<void> {
  const found = await durable.list({
    ...(state !== undefined && { state }),
    ...(queue !== undefined && { queue }),
    limit: most,
  })
  if (json) return print(found)
  if (found.length === 0) {
    const filter = [state && `state ${state.join(' or ')}`, queue && `queue ${queue}`].filter(Boolean)
    process.stdout.write(`no runs${filter.length > 0 ? ` in ${filter.join(', ')}` : ' yet'}\n`)
    return
  }
  process.stdout.write(`${listText(found, terminalOf(process.stdout), process.stdout.isTTY).join('\n')}\n`)
  if (found.length === most) process.stdout.write(`the newest ${most}; --limit shows more\n`)
}

/** The rows of a list. In a pipe nothing is cut. */
export function listText(runs: readonly RunStatus[], terminal: Terminal, isCut: boolean): string[] {
  const rows = runs.map(run => [
    oneLine(run.id),
    run.state,
    oneLine(run.name),
    run.queue,
    String(run.attempts),
    timeText(run.createdAt),
    run.checkpoint === null ? '' : `${bytesText(run.checkpoint.bytes)} ${ageText(run.checkpoint.age)} ago`,
    noteOf(run),
  ])
  const lines = table([
    ['ID', 'STATE', 'NAME', 'QUEUE', 'ATTEMPTS', 'CREATED', 'CHECKPOINT', 'NOTE'],
    ...rows,
  ])
  return lines.map((line, at) => {
    const shown = isCut ? fit(terminal, line, terminal.columns) : line
    if (at === 0) return paint(terminal, 'bold', shown)
    const { state } = runs[at - 1]!
    return shown.replace(` ${state} `, ` ${stateText(terminal, state)} `)
  })
}

async function show(durable: Durable, id: string, { json }: RunsFlags): Promise<void> {
  const row = await durable.store.reads.wholeRowOf(id)
  const status = statusOf(row)
  const history = (await durable.store.reads.eventsOf(id, 0)).map(eventOf)
  const values = valuesOf(row)
  if (json) return print({ ...status, ...values, history })
  const lines = showText(status, values, history, terminalOf(process.stdout))
  process.stdout.write(`${lines.join('\n')}\n`)
}

/** The arguments of a run, and its result if it has one. A damaged row is said, and ends nothing. */
function valuesOf(row: Readonly<Record<string, unknown>>): {
  readonly args: unknown
  readonly result?: unknown
} {
  const read = (bytes: unknown): unknown => {
    try {
      return jsonOf(decodeValue(bytes as Uint8Array, 'the value'))
    } catch (error) {
      return { unreadable: (error as Error).message }
    }
  }
  const args = read(row.args)
  return row.state === 'completed' ? { args, result: read(row.outcome) } : { args }
}

export function showText(
  run: RunStatus,
  values: { readonly args: unknown; readonly result?: unknown },
  history: readonly RunEvent[],
  terminal: Terminal,
): string[] {
  const { checkpoint, error } = run
  const fields: readonly (readonly [string, string | null])[] = [
    ['state', `${stateText(terminal, run.state)}${run.cancelling ? ', is being cancelled' : ''}`],
    ['name', oneLine(run.name)],
    ['function', oneLine(`${run.function} in ${run.module}`)],
    ['arguments', fit(terminal, JSON.stringify(values.args), 500)],
    ['queue', `${run.queue}, priority ${run.priority}`],
    ['worker', run.worker],
    ['attempts', `${run.attempts} claimed, ${run.failures} failed, ${run.retries} retries allowed`],
    ['blocked', run.blocked === null ? null : oneLine(run.blocked)],
    ['waits for', run.waitsFor === null ? null : oneLine(run.waitsFor)],
    ['wakes at', run.wakesAt && timeText(run.wakesAt)],
    ['progress', run.progress === null ? null : fit(terminal, oneLine(JSON.stringify(run.progress)), 500)],
    [
      'checkpoint',
      checkpoint &&
        `${ageText(checkpoint.age)} ago, ${bytesText(checkpoint.bytes)} stored, ${bytesText(checkpoint.rawBytes)} in memory`,
    ],
    ['result', 'result' in values ? fit(terminal, JSON.stringify(values.result), 2000) : null],
    ['error', error && errorLine(error)],
    ['created', timeText(run.createdAt)],
    ['started', run.startedAt && timeText(run.startedAt)],
    ['ended', run.endedAt && timeText(run.endedAt)],
  ]
  const lines = [paint(terminal, 'bold', oneLine(run.id))]
  for (const [name, text] of fields) if (text !== null) lines.push(`  ${name.padEnd(11)} ${text}`)
  // The stack repeats the message first.
  const stack = error?.stack?.split('\n').filter(line => /^\s+at /.test(line)) ?? []
  if (stack.length > 0) lines.push('', ...stack.map(line => `  ${oneLine(line)}`))
  lines.push('', 'history')
  for (const { at, kind, epoch, detail } of shortened(history)) {
    const about = detail === null ? '' : `  ${oneLine(detailText(detail))}`
    lines.push(`  ${timeText(at)}  ${kind.padEnd(10)} epoch ${epoch}${about}`)
  }
  return lines
}

/** Of checkpoints in a row, the last one: a long run has thousands. */
function shortened(history: readonly RunEvent[]): readonly RunEvent[] {
  return history.filter(({ kind }, at) => kind !== 'checkpoint' || history[at + 1]?.kind !== 'checkpoint')
}

function detailText(detail: Readonly<Record<string, unknown>>): string {
  return Object.entries(detail)
    .filter(([key]) => key !== 'stack')
    .map(([key, value]) => `${key} ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(', ')
}

async function cancel(durable: Durable, id: string, { reason, json }: RunsFlags): Promise<void> {
  const before = await durable.run(id).status()
  const state = await durable.run(id).cancel(reason)
  // The state before tells a run that has ended from one that this call has cancelled.
  if (state === 'completed' || state === 'failed' || before.state === 'cancelled') {
    throw new CommandError(`run ${id} has ended: ${state}`, {
      hint: 'only a run that has not ended can be cancelled',
    })
  }
  if (json) return print({ id, state, cancelling: state === 'running' })
  process.stdout.write(
    state === 'running' ? `${id}: its worker ends it within a heartbeat\n` : `${id}: cancelled\n`,
  )
}

async function retry(durable: Durable, id: string, { json, from = 'checkpoint' }: RunsFlags): Promise<void> {
  const isQueued = await durable.run(id).retry({ from })
  if (!isQueued) {
    const { state } = await durable.run(id).status()
    throw new CommandError(`run ${id} is ${state}`, {
      hint: 'only a run that failed or was cancelled can be retried',
    })
  }
  if (json) print({ id, state: 'queued' })
  else process.stdout.write(`${id}: queued\n`)
}

async function send(
  durable: Durable,
  id: string,
  name: string,
  text: string,
  { json }: RunsFlags,
): Promise<void> {
  await durable.send(id, name, messageOf(text))
  if (json) print({ id, name })
  else process.stdout.write(`${id}: the message ${name} is stored\n`)
}

function messageOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new CommandError(`the message ${text} is not JSON: ${(error as Error).message}`, {
      exitCode: EXIT_USAGE,
      hint: `quote it for the shell, as in '{"by":"ann"}' or '"a text"'`,
    })
  }
}

const PAGE = 200

/** A page at a time: a database may have more runs than memory. */
async function exportRuns(durable: Durable): Promise<void> {
  let after = ''
  for (;;) {
    const rows = await durable.store.reads.page(after, PAGE)
    for (const row of rows) {
      const history = (await durable.store.reads.eventsOf(row.id as string, 0)).map(eventOf)
      const line = `${JSON.stringify({ ...statusOf(row), ...valuesOf(row), history })}\n`
      if (!process.stdout.write(line)) await new Promise(resolve => process.stdout.once('drain', resolve))
    }
    if (rows.length < PAGE) return
    after = rows.at(-1)!.id as string
  }
}

function states(text: string, before: readonly RunState[] = []): RunState[] {
  const list = text.split(',').map(one => one.trim())
  const wrong = list.find(one => !(runStates as readonly string[]).includes(one))
  if (wrong !== undefined) throw new InvalidArgumentError(`give states of ${runStates.join(', ')}.`)
  return [...before, ...(list as RunState[])]
}

export function queueName(text: string): string {
  try {
    checkQueue('queue', text)
    return text
  } catch {
    throw new InvalidArgumentError('give up to 100 letters, digits, dots, dashes and underscores.')
  }
}

function limit(text: string): number {
  const value = wholeNumber(text)
  if (value < 1 || value > 100_000) throw new InvalidArgumentError('give a number from 1 to 100000.')
  return value
}
