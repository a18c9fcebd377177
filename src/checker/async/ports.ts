import { CheckError } from '../errors.ts'
import type { Execution } from './execution.ts'

type Listener = (event: unknown) => void

/**
 * A message port whose messages are events of the check. Those of one port arrive in their order, and before
 * or after any other event. It is an `EventTarget` as in browsers, and has the `on`, `once` and `off` of
 * Node.
 */
export class VirtualPort extends EventTarget {
  private other: VirtualPort | undefined
  private readonly execution: Execution
  private readonly waiting: unknown[] = []
  private started = false
  private closed = false
  private handler: Listener | null = null
  private readonly wrapped = new Map<unknown, Listener>()

  constructor(execution: Execution) {
    super()
    this.execution = execution
  }

  static pair(execution: Execution): { port1: VirtualPort; port2: VirtualPort } {
    const [port1, port2] = [new VirtualPort(execution), new VirtualPort(execution)]
    port1.other = port2
    port2.other = port1
    return { port1, port2 }
  }

  postMessage(value: unknown, transfer?: readonly unknown[] | { transfer?: readonly unknown[] }): void {
    const list = Array.isArray(transfer)
      ? transfer
      : ((transfer as { transfer?: readonly unknown[] })?.transfer ?? [])
    if (list.some(item => item instanceof VirtualPort)) {
      throw this.execution.refuse(
        new CheckError(
          'ERR_CHECK_UNCONTROLLED',
          'a MessagePort was sent through another one, which a check does not do; make both channels in the set-up',
        ),
      )
    }
    const message: unknown = structuredClone(value, { transfer: [...list] as ArrayBuffer[] })
    const to = this.other
    if (this.closed || to === undefined || to.closed) return
    if (to.started) to.announce(message)
    else to.waiting.push(message)
  }

  /** Adds the arrival of a message as a pending event. */
  private announce(data: unknown): void {
    const { execution } = this
    execution.add({
      kind: 'message',
      name: 'message',
      task: execution.task,
      time: 'free',
      line: this,
      keeps: true,
      happen: () => {
        if (!this.closed) this.dispatchEvent(new MessageEvent('message', { data }))
      },
    })
  }

  start(): void {
    if (this.started || this.closed) return
    this.started = true
    for (const message of this.waiting.splice(0)) this.announce(message)
  }

  close(): void {
    if (this.closed) return
    this.closed = true
    const { execution, other } = this
    for (const port of [this, other]) {
      if (port === undefined) continue
      execution.add({
        kind: 'message',
        name: 'close',
        task: execution.task,
        time: 'free',
        line: port,
        keeps: true,
        happen: () => {
          port.closed = true
          port.dispatchEvent(new Event('close'))
        },
      })
    }
  }

  get onmessage(): Listener | null {
    return this.handler
  }

  set onmessage(handler: Listener | null) {
    if (this.handler !== null) this.removeEventListener('message', this.handler as EventListener)
    this.handler = handler
    if (handler === null) return
    this.addEventListener('message', handler as EventListener)
    this.start()
  }

  on(name: string, listener: Listener): this {
    return this.listen(name, listener, false)
  }

  addListener(name: string, listener: Listener): this {
    return this.listen(name, listener, false)
  }

  once(name: string, listener: Listener): this {
    return this.listen(name, listener, true)
  }

  off(name: string, listener: Listener): this {
    const wrapped = this.wrapped.get(listener)
    if (wrapped !== undefined) this.removeEventListener(name, wrapped as EventListener)
    return this
  }

  removeListener(name: string, listener: Listener): this {
    return this.off(name, listener)
  }

  private listen(name: string, listener: Listener, once: boolean): this {
    const wrapped: Listener = event =>
      listener.call(this, name === 'message' ? (event as MessageEvent).data : event)
    this.wrapped.set(listener, wrapped)
    this.addEventListener(name, wrapped as EventListener, { once })
    if (name === 'message') this.start()
    return this
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }
}
