import { runtime } from '../machine/core/runtime.ts'
import { hubOf } from '../machine/web/webhub.ts'
import type { ObjectChannel, ObjectMessage } from './publishedobjects.ts'

type Receive = (channel: BroadcastChannel) => { message: unknown } | undefined
interface NodeProcess {
  getBuiltinModule?(name: string): { receiveMessageOnPort: Receive } | undefined
}

/**
 * A channel between all threads of the program: a message reaches every thread that has joined. A Node thread
 * can receive without a turn of its event loop. In browsers, Deno and Bun a worker receives at its next turn.
 */
export function openObjectChannel(arena: SharedArrayBuffer, name: string, serve: () => void): ObjectChannel {
  const delivered: ObjectMessage[] = []
  const deliver = (message: unknown): void => {
    delivered.push(message as ObjectMessage)
    serve()
  }
  const hub = hubOf(arena)
  if (hub !== undefined) {
    hub.listener = deliver
    return {
      isDirect: false,
      publish: message => hub.post(message),
      receive: () => delivered.shift(),
      close: () => (hub.listener = null),
    }
  }
  const { process } = globalThis as { process?: NodeProcess }
  // Deno and Bun have receiveMessageOnPort, but it does not accept a BroadcastChannel.
  const threads = runtime() === 'node' ? process?.getBuiltinModule?.('node:worker_threads') : undefined
  const receiveNow = threads?.receiveMessageOnPort
  const channel = new BroadcastChannel(name)
  channel.onmessage = event => deliver(event.data)
  // The listener must not keep the program alive.
  const { unref } = channel as { unref?: () => void }
  unref?.call(channel)
  return {
    isDirect: receiveNow !== undefined,
    publish: message => channel.postMessage(message),
    receive: () => delivered.shift() ?? (receiveNow?.(channel)?.message as ObjectMessage | undefined),
    close: () => channel.close(),
  }
}
