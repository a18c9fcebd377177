import type { ControlReply, ControlRequest, Hello } from '../trace/control.ts'
import type { TaskChanges } from '../trace/feed.ts'

/**
 * Where the page gets its data. The same interface has four kinds of implementation: a running program behind
 * its control socket, a file, a kernel in this page, and, inside a served page, the server. The server relays
 * one source to its pages, so a source never knows whether a page or a server listens.
 */
export interface ViewSource {
  /**
   * Begins to send. The first message is `hello`; a later listener gets all that the source still has.
   * Returns the function that ends it.
   */
  open(listen: ViewListener): () => void
  /** Never rejects: an error is a reply. */
  ask(request: ViewRequest): Promise<ViewReply>
}

export type ViewListener = (message: ViewMessage) => void

export const panelNames = ['timeline', 'tasks', 'locks', 'checker', 'simulation'] as const
export type PanelName = (typeof panelNames)[number]

/** What the source is, for the title and for the choice of panels. */
export interface ViewAbout {
  /** A program and its process id, or the name of a file. */
  readonly title: string
  readonly cpus: number
  /** The source changes while it is watched. */
  readonly live: boolean
  /** Tasks can be stopped, continued, killed and reprioritised. */
  readonly control: boolean
  /** The panels that have data; the first one is shown first. */
  readonly panels: readonly PanelName[]
}

export type ViewMessage =
  | { readonly kind: 'hello'; readonly about: ViewAbout }
  /** Ring events of a running kernel (packedevents.ts). `now` is milliseconds of its clock. */
  | { readonly kind: 'events'; readonly now: number; readonly lost: number; readonly bytes: Uint8Array }
  /** CPUs, and the tasks that have changed since the last such message. */
  | { readonly kind: 'tasks'; readonly changes: TaskChanges }
  /** A whole trace file. */
  | { readonly kind: 'trace'; readonly name: string; readonly bytes: Uint8Array }
  /** For the panels of these names: one execution, or one state. Their own modules define the data. */
  | { readonly kind: 'checker'; readonly data: unknown }
  | { readonly kind: 'simulation'; readonly data: unknown }
  /** No message follows. */
  | { readonly kind: 'ended'; readonly why: string }

export type ViewRequest =
  | ControlRequest
  | { readonly op: 'checker'; readonly data: unknown }
  | { readonly op: 'simulation'; readonly data: unknown }

export type ViewReply = ControlReply | { readonly ok: true; readonly data: unknown }

/** The title of a running program. */
export function titleOf({ program, pid }: Hello): string {
  return `${program} (${pid})`
}

/** The reply of a source that cannot do what was asked. */
export function refusal(request: ViewRequest): ViewReply {
  return { ok: false, error: `${request.op}: this source cannot do that` }
}
