/** The runtime of this thread. Deno and Bun claim to be Node, but differ where a machine depends on it. */
export type Runtime = 'node' | 'deno' | 'bun' | 'browser'

interface Globals {
  readonly process?: {
    readonly versions?: { readonly node?: string; readonly deno?: string; readonly bun?: string }
  }
}

export function runtime(): Runtime {
  const versions = (globalThis as unknown as Globals).process?.versions
  if (versions?.deno !== undefined) return 'deno'
  if (versions?.bun !== undefined) return 'bun'
  return versions?.node === undefined ? 'browser' : 'node'
}
