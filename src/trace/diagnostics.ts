import type { KernelEvents, KernelListeners } from '../kernel/boot/kernelevents.ts'

/**
 * Publishes failures of a kernel on Node's diagnostics channels: `heddle:failure`, `heddle:stuck`,
 * `heddle:deadlock`, `heddle:death`, `heddle:restart`. A subscriber changes nothing: a failure that no code
 * handles is still reported.
 */
interface Channel {
  readonly hasSubscribers: boolean
  publish(message: unknown): void
}

interface Globals {
  readonly process?: {
    getBuiltinModule?(name: string): { channel(name: string): Channel } | undefined
  }
}

const published: readonly (keyof KernelEvents)[] = ['failure', 'stuck', 'deadlock', 'death', 'restart']

export function publishDiagnostics(events: KernelListeners): void {
  const { process } = globalThis as unknown as Globals
  const diagnostics = process?.getBuiltinModule?.('node:diagnostics_channel')
  if (diagnostics === undefined) return
  for (const event of published) {
    const channel = diagnostics.channel(`heddle:${event}`)
    events.watch(event, about => {
      if (channel.hasSubscribers) channel.publish(about)
    })
  }
}
