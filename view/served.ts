import { FrameReader } from '../src/view/frames.ts'
import type { ViewListener, ViewReply, ViewRequest, ViewSource } from '../src/view/source.ts'

/** The server of the page (src/view/node-server.ts). */
export class ServedSource implements ViewSource {
  private readonly headers: Readonly<Record<string, string>>

  constructor(token: string) {
    this.headers = { Authorization: `Bearer ${token}` }
  }

  open(listen: ViewListener): () => void {
    const ending = new AbortController()
    void this.read(listen, ending.signal)
    return () => ending.abort()
  }

  async ask(request: ViewRequest): Promise<ViewReply> {
    try {
      const response = await fetch('/ask', {
        method: 'POST',
        headers: this.headers,
        body: JSON.stringify(request),
      })
      if (response.status === 403) return { ok: false, error: await response.text() }
      return (await response.json()) as ViewReply
    } catch {
      return { ok: false, error: 'the command that serves this page has ended' }
    }
  }

  private async read(listen: ViewListener, signal: AbortSignal): Promise<void> {
    let hasEnded = false
    const listenOn: ViewListener = message => {
      hasEnded ||= message.kind === 'ended'
      listen(message)
    }
    let why = 'the command that serves this page has ended'
    try {
      const response = await fetch('/stream', { headers: this.headers, signal })
      if (!response.ok || response.body === null) throw new Error(await response.text())
      const frames = new FrameReader()
      const reader = response.body.getReader()
      for (;;) {
        const { done, value } = await reader.read()
        if (done) break
        frames.push(value, listenOn)
      }
    } catch (error) {
      if (signal.aborted) return
      // A broken connection is a TypeError; anything else has its own words.
      if (!(error instanceof TypeError)) why = (error as Error).message
    }
    if (!hasEnded) listen({ kind: 'ended', why })
  }
}
