import { type ChildProcess, spawn } from 'node:child_process'
import { resolve } from 'node:path'

const main = resolve(import.meta.dirname, '../../src/cli/main.ts')

export interface Ended {
  readonly out: string
  readonly err: string
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** A program in a process of its own, whose output a test reads while it runs. */
export class Started {
  readonly child: ChildProcess
  readonly ended: Promise<Ended>
  private out = ''
  private err = ''
  private onOutput: () => void = () => undefined

  constructor(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
    const inherited = { ...process.env }
    delete inherited.DATABASE_URL
    this.child = spawn(process.execPath, args, {
      env: { ...inherited, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.child.stdout!.setEncoding('utf8').on('data', (text: string) => {
      this.out += text
      this.onOutput()
    })
    this.child.stderr!.setEncoding('utf8').on('data', (text: string) => (this.err += text))
    this.ended = new Promise(done => {
      this.child.once('close', (code, signal) => {
        this.onOutput()
        done({ out: this.out, err: this.err, code, signal })
      })
    })
  }

  /** Resolves when `isThere` accepts the output. Throws if the process ends before. */
  async until(isThere: (out: string) => boolean): Promise<void> {
    while (!isThere(this.out)) {
      if (this.child.exitCode !== null || this.child.signalCode !== null)
        throw new Error(`ended with ${this.child.exitCode ?? this.child.signalCode}: ${this.out}${this.err}`)
      await new Promise<void>(more => (this.onOutput = more))
    }
  }

  async end(signal: NodeJS.Signals): Promise<Ended> {
    this.child.kill(signal)
    return await this.ended
  }
}

/** `heddle` with these arguments. */
export function heddle(args: readonly string[], env: NodeJS.ProcessEnv = {}): Started {
  return new Started([main, ...args], env)
}

export async function heddleEnds(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ended> {
  return await heddle(args, env).ended
}

export function jsonLines(out: string): Record<string, any>[] {
  return out
    .split('\n')
    .filter(line => line.startsWith('{'))
    .map(line => JSON.parse(line) as Record<string, any>)
}
