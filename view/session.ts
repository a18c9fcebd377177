import type {
  PanelName,
  ViewAbout,
  ViewMessage,
  ViewReply,
  ViewRequest,
  ViewSource,
} from '../src/view/source.ts'

import { ViewData } from './model/data.ts'

export type SessionState = 'connecting' | 'open' | 'ended'

/**
 * One source as the page sees it: what has arrived, which panel is shown, and the listeners of changes. The
 * panels read it; only messages and calls of `show` change it.
 */
export class Session {
  private readonly source: ViewSource
  private readonly listeners = new Set<() => void>()
  private readonly receivers = new Set<(message: ViewMessage) => void>()
  private closeSource: () => void = () => undefined
  readonly data: ViewData = new ViewData()
  about: ViewAbout | null = null
  state: SessionState = 'connecting'
  /** Why the source has ended. */
  why = ''
  panel: PanelName = 'timeline'
  /** The last data for the panel `checker`, and for the panel `simulation`. */
  checker: unknown = null
  simulation: unknown = null
  private hasChosen = false

  constructor(source: ViewSource) {
    this.source = source
  }

  open(): void {
    this.closeSource = this.source.open(message => this.receive(message))
  }

  close(): void {
    this.closeSource()
    this.listeners.clear()
    this.receivers.clear()
  }

  ask(request: ViewRequest): Promise<ViewReply> {
    return this.source.ask(request)
  }

  show(panel: PanelName): void {
    this.panel = panel
    this.hasChosen = true
    this.changed()
  }

  /** Calls `listen` after each change of the fields of this object. Returns the function that ends it. */
  onChange(listen: () => void): () => void {
    this.listeners.add(listen)
    return () => void this.listeners.delete(listen)
  }

  /** Calls `receive` with each message. */
  onMessage(receive: (message: ViewMessage) => void): () => void {
    this.receivers.add(receive)
    return () => void this.receivers.delete(receive)
  }

  private receive(message: ViewMessage): void {
    this.data.receive(message)
    if (message.kind === 'hello') {
      this.about = message.about
      this.state = 'open'
      if (!this.hasChosen && message.about.panels.length > 0) this.panel = message.about.panels[0]
    } else if (message.kind === 'ended') {
      this.state = 'ended'
      this.why = message.why
    } else if (message.kind === 'checker') this.checker = message.data
    else if (message.kind === 'simulation') this.simulation = message.data
    for (const receive of this.receivers) receive(message)
    if (message.kind !== 'events' && message.kind !== 'tasks') this.changed()
  }

  private changed(): void {
    for (const listen of this.listeners) listen()
  }
}

/** What each panel gets. */
export interface PanelProps {
  readonly session: Session
}
