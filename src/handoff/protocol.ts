/** How a mutex waits where nobody said: what the launcher changes, so that a program needs no change (cli/run.ts). */
export type Protocol = 'plain' | 'handoff'

interface WithProcess {
  readonly process?: { readonly env?: Readonly<Record<string, string | undefined>> }
}

/** What worker threads inherit it by, on Node. */
export const PROTOCOL_VARIABLE = 'HEDDLE_PROTOCOL'

let protocol: Protocol =
  (globalThis as WithProcess).process?.env?.[PROTOCOL_VARIABLE] === 'handoff' ? 'handoff' : 'plain'

export function defaultProtocol(): Protocol {
  return protocol
}

/** For this thread; threads that it starts on Node inherit the environment, not this. */
export function setDefaultProtocol(next: Protocol): void {
  if (next !== 'plain' && next !== 'handoff') {
    throw new RangeError(`setDefaultProtocol('${String(next)}'): there are 'plain' and 'handoff'`)
  }
  protocol = next
}
