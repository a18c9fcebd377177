/** `heddle work`: runs durable runs until it is told to end. */
import { pathToFileURL } from 'node:url'
import { Command, InvalidArgumentError } from 'commander'
import type { Durable } from '../durable/durable.ts'
import type { Activity } from '../durable/worker/activity.ts'
import { statusOf } from '../durable/status.ts'
import { Kernel } from '../kernel/boot/kernel.ts'
import type { FunctionReference } from '../kernel/spawn/modules.ts'
import { BoundedLines } from './boundedlines.ts'
import { CommandError, EXIT_USAGE, guarded } from './failure.ts'
import { cpuCount, wholeNumber } from './numbers.ts'
import { compileVariables, patterns, programPath } from './program.ts'
import { queueName } from './runs.ts'
import {
  type DatabaseFlags,
  databaseHelp,
  folderHelp,
  openPlace,
  type Place,
  placeOf,
} from './runsdatabase.ts'
import { oneLine } from './runtexts.ts'
import { terminalOf } from './terminal.ts'
import {
  account,
  activityLine,
  addLine,
  countsText,
  drawWork,
  newWorkModel,
  type WorkModel,
} from './workmodel.ts'

interface WorkFlags extends DatabaseFlags {
  import?: string[]
  cpus?: number
  concurrency?: number
  queue?: string[]
  name?: string
  grace: number
  lease?: number
  compile?: string[]
  json?: boolean
}

export function workCommand(): Command {
  return new Command('work')
    .summary('run durable runs of a database, as many as the CPUs hold')
    .description(
      'Makes this machine a worker: claims durable runs by priority and runs them, until it gets SIGTERM or SIGINT. Then it stores the states of its runs, and other workers go on with them.',
    )
    .option(
      '--import <file>',
      'a module whose functions runs may call; more than one --import is allowed',
      more,
    )
    .option('--database <url>', databaseHelp)
    .option('--folder <dir>', folderHelp)
    .option(
      '--queue <name>',
      'take runs from this queue; more than one --queue is allowed (default: default)',
      queues,
    )
    .option('--cpus <n>', 'how many CPUs: 1 to 64', cpuCount)
    .option('--concurrency <n>', 'how many runs at the same time (default: one for each CPU)', runCount)
    .option('--name <text>', 'its name in rows and reports (default: host name, process and a random part)')
    .option('--grace <ms>', 'how long it waits for the states of its runs when it ends', wholeNumber, 10_000)
    .option(
      '--lease <s>',
      'seconds without a heartbeat after which its runs go on elsewhere: 10 or more',
      leaseTime,
    )
    .option(
      '--compile <packages>',
      "also compile these, without 'use task' in them, as heddle run --compile does",
      patterns,
    )
    .option('--json', 'print one JSON object a line for each start and end of a run')
    .addHelpText(
      'after',
      '\nExamples:\n  heddle work --import work.ts\n  heddle work --database postgres://user:password@host/runs --import work.ts --cpus 8\n  DATABASE_URL=… heddle work --import work.ts --import report.ts --queue mail --queue default',
    )
    .action((flags: WorkFlags) => guarded('work', flags, () => work(flags)))
}

const more = (text: string, before: readonly string[] = []): string[] => [...before, text]
const queues = (text: string, before: readonly string[] = []): string[] => [...before, queueName(text)]

function runCount(text: string): number {
  const value = wholeNumber(text)
  if (value < 1 || value > 10_000) throw new InvalidArgumentError('give a number from 1 to 10000.')
  return value
}

function leaseTime(text: string): number {
  const value = wholeNumber(text)
  if (value < 10 || value > 3600) throw new InvalidArgumentError('give a number of seconds from 10 to 3600.')
  return value
}

/** After the grace the database has this time for the last writes; then the process ends anyway. */
const LAST_WRITES_MS = 15_000
const EXIT_INTERRUPTED = 130

async function work(flags: WorkFlags): Promise<void> {
  const place = placeOf(flags)
  const files = (flags.import ?? []).map(programPath)
  if (files.length === 0) {
    throw new CommandError('no module is named', {
      exitCode: EXIT_USAGE,
      hint: 'give the file with the functions of the runs, as in --import work.ts',
    })
  }
  if (flags.name === '') {
    throw new CommandError('--name is empty', { exitCode: EXIT_USAGE, hint: 'give a text, or leave it out' })
  }
  const asked = signals()
  Object.assign(process.env, compileVariables(flags.compile))
  const kernel = await Kernel.boot(flags.cpus === undefined ? {} : { cpus: flags.cpus })
  try {
    let functions = 0
    for (const [at, file] of files.entries()) functions += await importFile(kernel, file, flags.import![at]!)
    await runWorker(kernel, place, functions, flags, asked)
  } finally {
    await kernel.close()
  }
  // A CPU that is blocked in a native call, or a timer of a module, does not keep the process.
  process.exit(process.exitCode ?? 0)
}

/** Imports a module into the kernel. Returns how many functions it has for runs. */
async function importFile(kernel: Kernel, file: string, named: string): Promise<number> {
  let view: Readonly<Record<string, unknown>>
  try {
    view = await kernel.import(pathToFileURL(file))
  } catch (error) {
    throw new CommandError(`--import ${named}: ${oneLine((error as Error).message)}`)
  }
  const functions = (Object.values(view) as FunctionReference[]).filter(({ isClass }) => !isClass)
  if (functions.length === 0) {
    throw new CommandError(`--import ${named}: it exports no function`, {
      exitCode: EXIT_USAGE,
      hint: "export the functions of the runs, and begin each with 'use task movable'",
    })
  }
  if (functions.every(({ immovable }) => immovable !== null)) {
    const [{ name, immovable }] = functions as [FunctionReference]
    process.stderr.write(
      `heddle work: no function of ${named} has a state that can be written, so their runs need checkpoint: false, and begin again when a worker dies (${name}: ${oneLine(immovable!)})\n`,
    )
  }
  return functions.length
}

/** Resolves with the first signal that ends the worker. A second SIGINT ends the process. */
function signals(): Promise<NodeJS.Signals> {
  return new Promise(resolve => {
    let isAsked = false
    const onSignal = (signal: NodeJS.Signals): void => {
      if (isAsked && signal === 'SIGINT') {
        process.stderr.write('heddle work: ended at once; its runs go on when their leases have lapsed\n')
        process.exit(EXIT_INTERRUPTED)
      }
      isAsked = true
      resolve(signal)
    }
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, onSignal)
  })
}

async function runWorker(
  kernel: Kernel,
  place: Place,
  functions: number,
  flags: WorkFlags,
  asked: Promise<NodeJS.Signals>,
): Promise<void> {
  const { queue = ['default'], concurrency = kernel.cpus, grace } = flags
  const durable = await openPlace(place, {
    kernel,
    queues: queue,
    concurrency,
    ...(flags.name !== undefined && { name: flags.name }),
    ...(flags.lease !== undefined && { lease: flags.lease }),
  })
  const { name } = durable
  const places = `${queue.length === 1 ? 'queue' : 'queues'} ${queue.join(', ')} of ${place.text}`
  const model = newWorkModel(`heddle work  ${name}  ${places}`, concurrency)
  const display: Display =
    flags.json === true
      ? new JsonDisplay()
      : process.stdout.isTTY && process.env.TERM !== 'dumb'
        ? new LiveDisplay(model, durable)
        : new LineDisplay()
  display.begin({
    worker: name,
    cpus: kernel.cpus,
    concurrency,
    queues: queue,
    functions,
    database: place.text,
  })
  const released: Activity[] = []
  const isNew = onceAWhile()
  durable.onWarning(({ run, message }) => {
    if (isNew(`${run} ${message}`)) display.warn(run, message)
  })
  durable.observe(activity => {
    if (activity.kind === 'released') released.push(activity)
    display.show(activity, account(model, activity, performance.now()))
  })
  const signal = await asked
  display.drain(signal, model.running.size)
  released.length = 0
  const late = setTimeout(() => {
    display.end()
    new CommandError('the database does not answer', {
      hint: 'the runs of this worker go on when their leases have lapsed',
    }).end('work', flags.json)
    process.exit()
  }, grace + LAST_WRITES_MS)
  await durable.close({ grace })
  clearTimeout(late)
  display.end()
  display.summary(released, model)
}

const SAME_WARNING_MS = 30_000
const WARNINGS_MAX = 100

/** Whether a text is not among those of the last half minute: a database that is away warns every second. */
function onceAWhile(): (text: string) => boolean {
  const told = new Map<string, number>()
  return text => {
    const now = performance.now()
    if (now - (told.get(text) ?? -Infinity) < SAME_WARNING_MS) return false
    told.delete(text)
    told.set(text, now)
    if (told.size > WARNINGS_MAX) told.delete(told.keys().next().value!)
    return true
  }
}

/** A worker at its begin. */
interface Begun {
  readonly worker: string
  readonly cpus: number
  readonly concurrency: number
  readonly queues: readonly string[]
  readonly functions: number
  readonly database: string
}

interface Display {
  begin(begun: Begun): void
  /** `ms`: how long this worker has had the run. */
  show(activity: Activity, ms: number): void
  warn(run: string | null, message: string): void
  drain(signal: string, running: number): void
  /** No more activity. */
  end(): void
  summary(released: readonly Activity[], model: WorkModel): void
}

const LINES_A_SECOND = 20
const JSON_LINES_A_SECOND = 2000
const IDS_MAX = 20

function moreText(kinds: Readonly<Record<string, number>>): string {
  const counts = Object.entries(kinds).map(([kind, count]) => `${count} ${kind}`)
  return `and in the same second: ${counts.join(', ')}`
}

function summaryText(released: readonly Activity[], model: WorkModel): string {
  const counts = countsText({ ...model, counts: { ...model.counts, released: 0 } })
  if (released.length === 0) return `no run had to be released; ${counts}`
  const ids = released.slice(0, IDS_MAX).map(({ run }) => oneLine(run))
  const rest = released.length - ids.length
  const lost = released.filter(({ hasImage }) => !hasImage).length
  return `released ${released.length} run${released.length === 1 ? '' : 's'} (${ids.join(', ')}${rest > 0 ? ` and ${rest} more` : ''})${lost > 0 ? `, of which ${lost} begin again` : ''}; ${counts}`
}

/** Plain lines, for logs. */
class LineDisplay implements Display {
  private readonly lines = new BoundedLines(LINES_A_SECOND, line => this.print(line), moreText)
  private readonly warnings = new BoundedLines(
    LINES_A_SECOND,
    line => process.stderr.write(`heddle work: ${line}\n`),
    moreText,
  )

  protected print(line: string): void {
    process.stdout.write(`${line}\n`)
  }

  begin({ worker, cpus, queues, functions, database }: Begun): void {
    const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`
    this.print(
      `${worker} works with ${counted(cpus, 'CPU')} and ${counted(functions, 'function')} for ${queues.length === 1 ? 'the queue' : 'the queues'} ${queues.join(', ')} of ${database}`,
    )
  }

  show(activity: Activity, ms: number): void {
    this.lines.add(activity.kind, activityLine(activity, ms))
  }

  warn(run: string | null, message: string): void {
    const line = run === null ? message : `run ${run}: ${message}`
    this.warnings.add('warnings', oneLine(line))
  }

  drain(signal: string, running: number): void {
    this.lines.flush()
    this.print(`${signal}: ends; stores the states of ${running} run${running === 1 ? '' : 's'}`)
  }

  end(): void {
    this.lines.flush()
    this.warnings.flush()
  }

  summary(released: readonly Activity[], model: WorkModel): void {
    process.stdout.write(`${summaryText(released, model)}\n`)
  }
}

/** One JSON object a line. */
class JsonDisplay implements Display {
  private readonly lines = new BoundedLines(
    JSON_LINES_A_SECOND,
    line => process.stdout.write(`${line}\n`),
    kinds => JSON.stringify({ event: 'more', kinds }),
  )

  private add(event: string, fields: object): void {
    this.lines.add(event, JSON.stringify({ event, at: new Date(), ...fields }))
  }

  begin(begun: Begun): void {
    this.add('begun', begun)
  }

  show({ kind, ...fields }: Activity, ms: number): void {
    this.add(kind, kind === 'claimed' ? fields : { ...fields, ms: Math.round(ms) })
  }

  warn(run: string | null, message: string): void {
    this.add('warning', { run, message })
  }

  drain(signal: string, running: number): void {
    this.lines.flush()
    this.add('draining', { signal, running })
  }

  end(): void {
    this.lines.flush()
  }

  summary(released: readonly Activity[], { counts }: WorkModel): void {
    this.add('ended', { released: released.map(({ run }) => run), counts })
  }
}

const REDRAW_MS = 500

/** On a terminal: lines at the end of the screen that are drawn again, with what runs now. */
class LiveDisplay extends LineDisplay {
  private readonly model: WorkModel
  private readonly durable: Durable
  private timer: NodeJS.Timeout | undefined
  private height = 0
  private isReading = false

  constructor(model: WorkModel, durable: Durable) {
    super()
    this.model = model
    this.durable = durable
  }

  protected override print(line: string): void {
    addLine(this.model, line)
    this.draw()
  }

  override begin(): void {
    this.timer = setInterval(() => void this.read(), REDRAW_MS)
    this.draw()
  }

  override warn(run: string | null, message: string): void {
    this.print(oneLine(run === null ? message : `run ${run}: ${message}`))
  }

  /** Progress and checkpoints are in the rows. */
  private async read(): Promise<void> {
    if (!this.isReading) {
      this.isReading = true
      const ids = [...this.model.running.keys()].slice(0, terminalOf(process.stdout).rows)
      const rows = await this.durable.store.reads.rowsOf(ids).catch(() => [])
      this.model.rows = new Map(rows.map(row => [row.id as string, statusOf(row)]))
      this.isReading = false
    }
    if (this.timer !== undefined) this.draw()
  }

  private draw(): void {
    const lines = drawWork(this.model, terminalOf(process.stdout), performance.now())
    const up = this.height > 0 ? `\u001b[${this.height}A` : ''
    process.stdout.write(`${up}\r\u001b[J${lines.join('\n')}\n`)
    this.height = lines.length
  }

  override end(): void {
    clearInterval(this.timer)
    this.timer = undefined
    super.end()
  }
}
