/** `heddle top`: shows a running kernel in the terminal. */
import { Command } from 'commander'
import type { ControlReply, ControlRequest } from '../../trace/control.ts'
import { ControlClient } from '../../trace/node-control.ts'
import type { KernelSnapshot } from '../../trace/snapshot.ts'
import { CommandError, guarded } from '../failure.ts'
import { findKernel } from '../findkernel.ts'
import { milliseconds } from '../numbers.ts'
import { terminalOf } from '../terminal.ts'
import { keysOf, press } from './keys.ts'
import { newModel, type TopModel, update } from './model.ts'
import { draw } from './screen.ts'

export interface TopFlags {
  interval?: number
  once?: boolean
  json?: boolean
}

export function topCommand(): Command {
  return new Command('top')
    .summary('watch the CPUs and tasks of a running program; stop, continue and kill tasks')
    .description(
      'Shows the CPUs and tasks of a program that runs a heddle kernel. Without a process id: of the only such program.',
    )
    .argument('[pid]', 'the process to watch')
    .option('--interval <ms>', 'time between two updates', milliseconds, 500)
    .option('--once', 'print the display once and end')
    .option('--json', 'print one snapshot as JSON and end')
    .addHelpText('after', '\nExamples:\n  heddle top\n  heddle top 4711\n  heddle top --json | jq .tasks')
    .action(async (pid: string | undefined, flags: TopFlags) =>
      guarded('top', flags, async () => {
        const code = await top(findKernel('top', pid), flags)
        // Ctrl-C is the usual way to close the display.
        process.exitCode = code === EXIT_INTERRUPTED ? 0 : code
      }),
    )
}

/** Watches the kernel at a socket. Returns the exit code: `EXIT_INTERRUPTED` after Ctrl-C. */
export async function top(path: string, flags: TopFlags): Promise<number> {
  const client = await ControlClient.connect(path).catch(() => {
    throw new CommandError('the program has ended', { hint: 'it left its socket behind' })
  })
  try {
    const reply = await client.ask({ op: 'hello' })
    const hello = reply.ok && 'hello' in reply ? reply.hello : null
    const title = `heddle top  ${hello?.program ?? ''} (${hello?.pid ?? '?'})`
    if (flags.json) {
      process.stdout.write(`${JSON.stringify(await snapshotOf(client))}\n`)
      return 0
    }
    if (flags.once || process.stdout.isTTY !== true) {
      process.stdout.write(`${await once(client, title)}\n`)
      return 0
    }
    const live = new Live(client, title, flags.interval ?? 500)
    await live.run()
    return live.interrupted ? EXIT_INTERRUPTED : 0
  } finally {
    client.close()
  }
}

async function snapshotOf(client: ControlClient): Promise<KernelSnapshot> {
  const reply = await client.ask({ op: 'snapshot' })
  if (reply.ok && 'snapshot' in reply) return reply.snapshot
  throw new CommandError(reply.ok ? 'the program sent no snapshot' : reply.error, {
    hint: 'the program may use another version of heddle',
  })
}

/** The display of two snapshots, 100 ms apart: a share of CPU time needs two. */
async function once(client: ControlClient, title: string): Promise<string> {
  const model = newModel()
  model.hasCursor = false
  update(model, await snapshotOf(client))
  await new Promise(resolve => setTimeout(resolve, 100))
  update(model, await snapshotOf(client))
  const terminal = terminalOf(process.stdout)
  const rows = (model.snapshot?.cpus.length ?? 0) + model.rows.length + 8
  const lines = draw(model, title, { ...terminal, rows, columns: process.stdout.columns ?? 120 })
  return lines.slice(0, -1).join('\n').trimEnd()
}

/** The exit code of a program that SIGINT ended, by the shells' convention. */
export const EXIT_INTERRUPTED = 130

const ENTER_SCREEN = '\u001b[?1049h\u001b[?25l'
const LEAVE_SCREEN = '\u001b[?25h\u001b[?1049l'

/** The live display. `run` owns the terminal until it returns, and restores it also after an error. */
class Live {
  private readonly client: ControlClient
  private readonly title: string
  private readonly interval: number
  private readonly model: TopModel = newModel()
  private shown: string[] = []
  private finish: () => void = () => undefined

  constructor(client: ControlClient, title: string, interval: number) {
    this.client = client
    this.title = title
    this.interval = interval
  }

  async run(): Promise<void> {
    const { stdin, stdout } = process
    const finished = new Promise<void>(resolve => {
      this.finish = resolve
    })
    const onKeys = (text: string): void => void this.keys(text)
    const onResize = (): void => {
      this.shown = []
      this.redraw()
    }
    const restore = (): void => {
      if (stdin.isTTY) stdin.setRawMode(false)
      stdout.write(LEAVE_SCREEN)
    }
    const onSignal = (): void => this.finish()
    if (stdin.isTTY) stdin.setRawMode(true)
    stdin.setEncoding('utf8')
    stdin.on('data', onKeys)
    stdout.on('resize', onResize)
    process.on('exit', restore)
    for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT'] as const) process.on(signal, onSignal)
    stdout.write(ENTER_SCREEN)
    const timer = setInterval(() => void this.refresh(), this.interval)
    let ended = false
    try {
      await this.refresh()
      await finished
    } catch {
      ended = true
    } finally {
      clearInterval(timer)
      for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT'] as const) process.off(signal, onSignal)
      process.off('exit', restore)
      stdout.off('resize', onResize)
      stdin.off('data', onKeys)
      stdin.pause()
      restore()
    }
    if (ended || this.gone) stdout.write('the program has ended\n')
  }

  private gone = false
  /** Ctrl-C closed the display. */
  interrupted = false

  private async refresh(): Promise<void> {
    if (this.model.paused) return
    try {
      update(this.model, await snapshotOf(this.client))
    } catch {
      this.gone = true
      this.finish()
      return
    }
    this.redraw()
  }

  private async keys(text: string): Promise<void> {
    for (const key of keysOf(text)) {
      const action = press(this.model, key)
      if (action === 'quit') {
        this.interrupted = key === 'ctrl c'
        this.finish()
        return
      }
      if (action !== null) this.model.message = await this.perform(action)
    }
    this.redraw()
  }

  private async perform(action: ControlRequest): Promise<string> {
    const reply: ControlReply = await this.client
      .ask(action)
      .catch((error: Error): ControlReply => ({ ok: false, error: error.message }))
    if (!reply.ok) return reply.error
    const what = 'task' in action ? `${action.op} ${action.task}` : action.op
    return 'done' in reply && !reply.done ? `${what}: nothing changed, it may have ended` : `${what}: done`
  }

  /** Writes only the lines that have changed. */
  private redraw(): void {
    const lines = draw(this.model, this.title, terminalOf(process.stdout))
    let text = ''
    lines.forEach((line, at) => {
      if (line !== this.shown[at]) text += `\u001b[${at + 1};1H${line}\u001b[K`
    })
    if (lines.length < this.shown.length) text += `\u001b[${lines.length + 1};1H\u001b[J`
    this.shown = lines
    if (text !== '') process.stdout.write(text)
  }
}
