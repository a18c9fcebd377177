import { runtime } from '../machine/core/runtime.ts'
import { hubOf } from '../machine/web/webhub.ts'
import type { ObjectChannel, ObjectMessage } from './publishedobjects.ts'

type Receive = (channel: BroadcastChannel) => { message: unknown } | undefined
interface NodeProcess {
  getBuiltinModule?(name: string): { receiveMessageOnPort: Receive } | undefined
}

/**
 * A channel that all threads of the program have: a message reaches everyone who has joined. Node lets a
 * thread take a message out without a turn of its event loop; browsers, Deno and Bun do not, so a worker
 * there takes it in at its next turn.
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
  // Deno and Bun have the function, but not for such a channel.
  const threads = runtime() === 'node' ? process?.getBuiltinModule?.('node:worker_threads') : undefined
  const receiveNow = threads?.receiveMessageOnPort
  const channel = new BroadcastChannel(name)
  channel.onmessage = event => deliver(event.data)
  // Listening must not keep a program alive.
  const { unref } = channel as { unref?: () => void }
  unref?.call(channel)
  return {
    isDirect: receiveNow !== undefined,
    publish: message => channel.postMessage(message),
    receive: () => delivered.shift() ?? (receiveNow?.(channel)?.message as ObjectMessage | undefined),
    close: () => channel.close(),
  }
}
