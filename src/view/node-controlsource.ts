import { ControlClient } from '../trace/node-control.ts'
import {
  titleOf,
  type ViewListener,
  type ViewMessage,
  type ViewReply,
  type ViewRequest,
  type ViewSource,
} from './source.ts'

const EVENTS_MS = 33
/** Every so many polls of events also asks for the tasks. */
const TASKS_EVERY = 8
/** A page that opens later gets this much of what was before. */
const KEPT_BYTES = 64 << 20

/**
 * A running program, through its control socket (src/trace/node-control.ts). It polls from the beginning, and
 * keeps the last events, so that a page that opens later also sees what was before.
 */
export class ControlSource implements ViewSource {
  private readonly client: ControlClient
  /** For requests of the page: an answer that takes time must not hold up the events. */
  private readonly asker: ControlClient
  private readonly listeners = new Set<ViewListener>()
  private readonly kept: ViewMessage[] = []
  private readonly tasks = new Map<number, ViewTasks['changed'][number]>()
  private last: ViewTasks | null = null
  private keptBytes = 0
  private hello: ViewMessage | null = null
  private ended: ViewMessage | null = null
  private polls = 0
  /** Resolves when the program has ended, or the connection. */
  readonly end: Promise<void>

  private constructor(client: ControlClient, asker: ControlClient) {
    this.client = client
    this.asker = asker
    this.end = this.poll()
  }

  /** Connects to the socket. Rejects when no program listens. */
  static async connect(path: string): Promise<ControlSource> {
    return new ControlSource(await ControlClient.connect(path), await ControlClient.connect(path))
  }

  open(listen: ViewListener): () => void {
    if (this.hello !== null) listen(this.hello)
    if (this.last !== null) {
      listen({ kind: 'tasks', changes: { ...this.last, changed: [...this.tasks.values()], gone: [] } })
    }
    for (const message of this.kept) listen(message)
    if (this.ended !== null) listen(this.ended)
    this.listeners.add(listen)
    return () => void this.listeners.delete(listen)
  }

  async ask(request: ViewRequest): Promise<ViewReply> {
    if (request.op === 'checker' || request.op === 'simulation') {
      return { ok: false, error: `${request.op}: this is a running program` }
    }
    // The connection's own polls depend on their order.
    if (request.op === 'events' || request.op === 'changes') {
      return { ok: false, error: `${request.op}: the page gets these by itself` }
    }
    try {
      return await this.asker.ask(request)
    } catch (error) {
      return { ok: false, error: (error as Error).message }
    }
  }

  close(): void {
    this.client.close()
    this.asker.close()
  }

  private async poll(): Promise<void> {
    try {
      const reply = await this.client.ask({ op: 'hello' })
      if (!reply.ok || !('hello' in reply)) throw new Error('the program speaks another version')
      const { hello } = reply
      this.hello = {
        kind: 'hello',
        about: {
          title: titleOf(hello),
          cpus: hello.cpus,
          live: true,
          control: true,
          panels: ['timeline', 'tasks', 'locks'],
        },
      }
      this.send(this.hello)
      for (;;) {
        await this.pollOnce()
        await new Promise(resolve => setTimeout(resolve, EVENTS_MS))
      }
    } catch (error) {
      this.ended = { kind: 'ended', why: (error as Error).message }
      this.send(this.ended)
    }
  }

  private async pollOnce(): Promise<void> {
    if (this.polls++ % TASKS_EVERY === 0) {
      const reply = await this.client.ask({ op: 'changes' })
      if (reply.ok && 'changes' in reply) this.takeTasks(reply.changes)
    }
    const reply = await this.client.ask({ op: 'events' })
    if (!reply.ok) throw new Error(reply.error)
    if (!('events' in reply)) return
    const { now, lost, base64 } = reply.events
    const bytes = new Uint8Array(Buffer.from(base64, 'base64'))
    const message: ViewMessage = { kind: 'events', now, lost, bytes }
    this.send(message)
    if (bytes.length > 0) this.keep(message, bytes.length)
  }

  private takeTasks(changes: ViewTasks): void {
    for (const slot of changes.gone) this.tasks.delete(slot)
    for (const task of changes.changed) this.tasks.set(task.slot, task)
    this.last = changes
    this.send({ kind: 'tasks', changes })
  }

  private keep(message: ViewMessage, size: number): void {
    this.kept.push(message)
    this.keptBytes += size
    while (this.keptBytes > KEPT_BYTES) {
      const oldest = this.kept.shift()
      this.keptBytes -= oldest?.kind === 'events' ? oldest.bytes.length : 0
    }
  }

  private send(message: ViewMessage): void {
    for (const listen of this.listeners) listen(message)
  }
}

type ViewTasks = Extract<ViewMessage, { kind: 'tasks' }>['changes']
