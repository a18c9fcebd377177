import type { CheckerData, RerunReply } from '../checker/report/checkview.ts'
import { refusal, type ViewListener, type ViewReply, type ViewRequest, type ViewSource } from './source.ts'

/** The checks of a run, or of a file. */
export interface Checks {
  readonly data: CheckerData
  /** Calls `listener` after each change. Returns the function that ends it. */
  follow?(listener: () => void): () => void
  /** Never rejects. */
  answer(request: unknown): RerunReply | Promise<RerunReply>
}

/** A page needs no more: the search goes on between two messages. */
const MESSAGE_MS = 150
const MESSAGE_PART = 20

/** Checks that run in this process, or a saved failure. */
export class CheckSource implements ViewSource {
  private readonly checks: Checks
  private readonly title: string

  constructor(checks: Checks, title: string) {
    this.checks = checks
    this.title = title
  }

  open(listen: ViewListener): () => void {
    const { checks, title } = this
    const live = checks.follow !== undefined
    listen({ kind: 'hello', about: { title, cpus: 0, live, control: false, panels: ['checker'] } })
    let timer: NodeJS.Timeout | undefined
    let last = 0
    let pause = MESSAGE_MS
    const send = (): void => {
      timer = undefined
      const begun = performance.now()
      listen({ kind: 'checker', data: checks.data })
      last = performance.now()
      // A long message takes no more than a part of the time of the search.
      pause = Math.max(MESSAGE_MS, MESSAGE_PART * (last - begun))
    }
    send()
    const unfollow = checks.follow?.(() => {
      if (checks.data.over || performance.now() - last >= pause) {
        clearTimeout(timer)
        send()
      } else timer ??= setTimeout(send, pause)
    })
    return () => {
      clearTimeout(timer)
      unfollow?.()
    }
  }

  async ask(request: ViewRequest): Promise<ViewReply> {
    if (request.op !== 'checker') return refusal(request)
    return { ok: true, data: await this.checks.answer(request.data) }
  }
}
