import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface, type Interface } from 'node:readline'

/** A program in another language, built here: it reads the name of a measurement, and prints nanoseconds. */
export class NativeProgram {
  private readonly folder: string
  private readonly process: ChildProcess
  private readonly lines: Interface
  private readonly answers: ((line: string) => void)[] = []

  private constructor(folder: string, process: ChildProcess) {
    this.folder = folder
    this.process = process
    this.lines = createInterface({ input: process.stdout! })
    this.lines.on('line', line => this.answers.shift()?.(line))
  }

  /** Null when there is no such compiler, or it cannot build the program. */
  static build(compiler: string, args: (out: string) => readonly string[]): NativeProgram | null {
    const folder = mkdtempSync(join(tmpdir(), 'heddle-native-'))
    const out = join(folder, 'program')
    try {
      execFileSync(compiler, args(out), { stdio: 'ignore' })
      return new NativeProgram(folder, spawn(out, { stdio: ['pipe', 'pipe', 'inherit'] }))
    } catch {
      rmSync(folder, { recursive: true })
      return null
    }
  }

  /** Nanoseconds a turn of the measurement `name`. */
  async ask(name: string, turns: number): Promise<number> {
    const answer = new Promise<string>(resolve => this.answers.push(resolve))
    this.process.stdin!.write(`${name} ${turns}\n`)
    const took = Number(await answer)
    if (!(took >= 0)) throw new Error(`the native program does not know ${name}`)
    return took
  }

  close(): void {
    this.lines.close()
    this.process.kill()
    rmSync(this.folder, { recursive: true })
  }
}
