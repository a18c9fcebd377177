/**
 * How a mutex waits if its options do not say. The launcher sets it, so that the program need not change
 * (cli/run.ts).
 */
type Protocol = 'plain' | 'handoff'

interface WithProcess {
  readonly process?: { readonly env?: Readonly<Record<string, string | undefined>> }
}

/** On Node, worker threads inherit the protocol through this variable. */
export const PROTOCOL_VARIABLE = 'HEDDLE_PROTOCOL'

const protocol: Protocol =
  (globalThis as WithProcess).process?.env?.[PROTOCOL_VARIABLE] === 'handoff' ? 'handoff' : 'plain'

export function defaultProtocol(): Protocol {
  return protocol
}
