/**
 * Broadcasts between the threads of a machine on Web Workers: a message reaches all other threads at a turn
 * of their event loops. It goes through the death watcher (webmachine.ts), whose event loop always turns: a
 * BroadcastChannel cannot carry shared memory.
 */
export interface WebHub {
  post(message: unknown): void
  listener: ((message: unknown) => void) | null
}

/** A broadcast on its way. */
export interface HubMessage {
  readonly heard: unknown
}

const hubs = new WeakMap<SharedArrayBuffer, WebHub>()

/** Joins this thread, by its port to the death watcher. */
export function joinHub(arena: SharedArrayBuffer, line: Worker | MessagePort): void {
  const hub: WebHub = { post: heard => line.postMessage({ heard } satisfies HubMessage), listener: null }
  line.addEventListener('message', event => {
    const { data } = event as MessageEvent<HubMessage | number>
    if (typeof data === 'object') hub.listener?.(data.heard)
  })
  if ('start' in line) line.start()
  hubs.set(arena, hub)
}

export function hubOf(arena: SharedArrayBuffer): WebHub | undefined {
  return hubs.get(arena)
}
