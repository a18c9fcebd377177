/** `heddle top`: a running kernel, live in the terminal. */
import { Command } from 'commander'
import type { ControlReply, ControlRequest } from '../../trace/control.ts'
import { ControlClient, runningKernels } from '../../trace/node-control.ts'
import type { KernelSnapshot } from '../../trace/snapshot.ts'
import { CommandError, EXIT_USAGE } from '../failure.ts'
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
    .summary('watch the CPUs and tasks of a running program, and steer them')
    .description(
      'Shows the CPUs and tasks of a program that runs a heddle kernel, live. Without a process id: the only one that runs.',
    )
    .argument('[pid]', 'the process to watch')
    .option('--interval <ms>', 'how often to look', Number, 500)
    .option('--once', 'print one picture and end')
    .option('--json', 'print one snapshot as JSON and end')
    .addHelpText('after', '\nExamples:\n  heddle top\n  heddle top 4711\n  heddle top --json | jq .tasks')
    .action(async (pid: string | undefined, flags: TopFlags) => {
      try {
        const code = await top(findKernel(pid), flags)
        // Ctrl-C is how one leaves it.
        process.exitCode = code === EXIT_INTERRUPTED ? 0 : code
      } catch (error) {
        if (!(error instanceof CommandError)) throw error
        error.end('top', flags.json)
      }
    })
}

function findKernel(pid: string | undefined): string {
  if (pid !== undefined && !/^[0-9]+$/.test(pid)) {
    throw new CommandError(`${pid} is no process id`, {
      exitCode: EXIT_USAGE,
      hint: 'give a number, as ps prints it',
    })
  }
  const kernels = runningKernels()
  const programs = [...new Set(kernels.map(kernel => kernel.pid))]
  if (pid === undefined && programs.length > 1) {
    throw new CommandError(`${programs.length} programs of yours run a heddle kernel`, {
      exitCode: EXIT_USAGE,
      hint: `name one: heddle top ${programs.join(', or heddle top ')}`,
    })
  }
  const found = pid === undefined ? kernels.at(-1) : kernels.findLast(kernel => kernel.pid === Number(pid))
  if (found !== undefined) return found.path
  if (pid === undefined) {
    throw new CommandError('no program of yours runs a heddle kernel', {
      hint: 'start one, as in heddle run program.ts, and look again',
    })
  }
  const others = kernels.map(kernel => kernel.pid).join(', ')
  throw new CommandError(`process ${pid} runs no heddle kernel`, {
    hint: others === '' ? 'no other of yours does either' : `these do: ${others}`,
  })
}

/** Watches the kernel behind a socket. Returns the exit code: that of Ctrl-C where that ended it. */
export async function top(path: string, flags: TopFlags): Promise<number> {
  const client = await ControlClient.connect(path).catch(() => {
    throw new CommandError('the program has ended', { hint: 'its socket is still there, and nobody listens' })
  })
  try {
    const reply = await client.ask({ op: 'hello' })
    const hello = reply.ok && 'hello' in reply ? reply.hello : null
    const title = `heddle top  ${hello?.program ?? ''} (${hello?.pid ?? '?'})`
    if (flags.json) {
      process.stdout.write(`${JSON.stringify(await look(client))}\n`)
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

async function look(client: ControlClient): Promise<KernelSnapshot> {
  const reply = await client.ask({ op: 'snapshot' })
  if (reply.ok && 'snapshot' in reply) return reply.snapshot
  throw new CommandError(reply.ok ? 'the program answered something else' : reply.error)
}

/** Two looks, a little apart, so that there are shares to show. */
async function once(client: ControlClient, title: string): Promise<string> {
  const model = newModel()
  model.hasCursor = false
  update(model, await look(client))
  await new Promise(resolve => setTimeout(resolve, 100))
  update(model, await look(client))
  const terminal = terminalOf(process.stdout)
  const rows = (model.snapshot?.cpus.length ?? 0) + model.rows.length + 8
  const lines = draw(model, title, { ...terminal, rows, columns: process.stdout.columns ?? 120 })
  return lines.slice(0, -1).join('\n').trimEnd()
}

/** As a shell says it of what SIGINT ended. */
export const EXIT_INTERRUPTED = 130

const ENTER_SCREEN = '\u001b[?1049h\u001b[?25l'
const LEAVE_SCREEN = '\u001b[?25h\u001b[?1049l'

/**
 * The live picture: owns the terminal between `run` and its end, and gives it back as it was, whatever
 * happens.
 */
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
  /** Ctrl-C ended it. */
  interrupted = false

  private async refresh(): Promise<void> {
    if (this.model.paused) return
    try {
      update(this.model, await look(this.client))
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
