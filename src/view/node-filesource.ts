import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import {
  refusal,
  type ViewListener,
  type ViewMessage,
  type ViewReply,
  type ViewRequest,
  type ViewSource,
} from './source.ts'

/** A recorded trace, or the dump of a flight recorder. The page reads the file's format. */
export class FileSource implements ViewSource {
  private readonly messages: readonly ViewMessage[]

  /** Reads the file. Throws what `readFileSync` throws. */
  constructor(path: string) {
    const bytes = new Uint8Array(readFileSync(path))
    const name = basename(path)
    this.messages = [
      {
        kind: 'hello',
        about: { title: name, cpus: 0, live: false, control: false, panels: ['timeline', 'tasks', 'locks'] },
      },
      { kind: 'trace', name, bytes },
    ]
  }

  open(listen: ViewListener): () => void {
    this.messages.forEach(listen)
    return () => undefined
  }

  async ask(request: ViewRequest): Promise<ViewReply> {
    return refusal(request)
  }
}
