/**
 * What the threads of a machine on Web Workers tell each other: a message of one reaches all others at a turn
 * of their event loops. It goes through the undertaker (webmachine.ts), which is the one that always turns:
 * shared memory does not pass a BroadcastChannel.
 */
export interface WebHub {
  post(message: unknown): void
  listener: ((message: unknown) => void) | null
}

/** As it travels. */
export interface HubMessage {
  readonly heard: unknown
}

const hubs = new WeakMap<SharedArrayBuffer, WebHub>()

/** Joins this thread, by its end of the line to the undertaker. */
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
