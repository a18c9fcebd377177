import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Question } from './contender.ts'

/** A contender, in its own process. */
export class Side {
  readonly name: string
  private readonly child: ChildProcess

  private constructor(name: string, child: ChildProcess) {
    this.name = name
    this.child = child
  }

  static async start(name: string): Promise<Side> {
    const child = fork(fileURLToPath(new URL('./contender.ts', import.meta.url)), [name])
    await once(child, 'message')
    return new Side(name, child)
  }

  async ask(question: Question): Promise<number> {
    return (await this.reply(question)) as number
  }

  async askAll(question: Question): Promise<number[]> {
    return (await this.reply(question)) as number[]
  }

  async close(): Promise<void> {
    this.child.disconnect()
    await once(this.child, 'exit')
  }

  private async reply(question: Question): Promise<unknown> {
    this.child.send(question)
    const [reply] = (await once(this.child, 'message')) as unknown[]
    return reply
  }
}

export const peerNames: readonly string[] = ['piscina', 'tinypool', 'workerpool', 'poolifier']

/** Measures every peer in turn, and returns the best result as the baseline. */
export async function bestOf(peers: readonly Side[], question: Question): Promise<number> {
  let best = Infinity
  for (const peer of peers) best = Math.min(best, await peer.ask(question))
  return best
}
