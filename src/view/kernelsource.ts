import { viewOf } from '../kernel/boot/hooks.ts'
import type { KernelView } from '../kernel/boot/view.ts'
import { answer, ControlSession, type Hello } from '../trace/control.ts'
import { refusal, type ViewListener, type ViewReply, type ViewRequest, type ViewSource } from './source.ts'

const EVENTS_MS = 33
const TASKS_EVERY = 8

/** A kernel that was booted on this thread, in a page. */
export class KernelSource implements ViewSource {
  private readonly view: KernelView
  private readonly hello: Hello
  private readonly session: ControlSession

  constructor(kernel: object, title: string) {
    this.view = viewOf(kernel)
    this.hello = { pid: 0, program: title, cpus: this.view.s.cpus }
    this.session = new ControlSession(this.view)
  }

  open(listen: ViewListener): () => void {
    const { feed } = this.session
    listen({
      kind: 'hello',
      about: {
        title: this.hello.program,
        cpus: this.hello.cpus,
        live: true,
        control: true,
        panels: ['timeline', 'tasks', 'locks'],
      },
    })
    let polls = 0
    const poll = (): void => {
      if (polls++ % TASKS_EVERY === 0) listen({ kind: 'tasks', changes: feed.tasks() })
      listen({ kind: 'events', ...feed.events() })
    }
    poll()
    const timer = setInterval(poll, EVENTS_MS)
    return () => {
      clearInterval(timer)
      this.session.close()
    }
  }

  async ask(request: ViewRequest): Promise<ViewReply> {
    if (request.op === 'checker' || request.op === 'simulation') return refusal(request)
    return answer(this.view, this.hello, request, this.session)
  }
}
