/**
 * How a mutex waits where nobody said: what the launcher changes, so that a program needs no change
 * (cli/run.ts).
 */
type Protocol = 'plain' | 'handoff'

interface WithProcess {
  readonly process?: { readonly env?: Readonly<Record<string, string | undefined>> }
}

/** What worker threads inherit it by, on Node. */
export const PROTOCOL_VARIABLE = 'HEDDLE_PROTOCOL'

const protocol: Protocol =
  (globalThis as WithProcess).process?.env?.[PROTOCOL_VARIABLE] === 'handoff' ? 'handoff' : 'plain'

export function defaultProtocol(): Protocol {
  return protocol
}
