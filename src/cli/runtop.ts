import { spawn } from 'node:child_process'
import { runningKernels } from '../trace/node-control.ts'
import { exitCodeOf } from './program.ts'
import { EXIT_INTERRUPTED, top } from './top/top.ts'

const POLL_MS = 50

/** Runs a program and watches its first kernel. Keeps the program's output until the display is closed. */
export async function runUnderTop(
  node: string,
  command: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<number> {
  const child = spawn(node, command, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const printed: { readonly to: NodeJS.WriteStream; readonly text: Buffer }[] = []
  let isFree = false
  const print = (to: NodeJS.WriteStream, text: Buffer): void => {
    if (isFree) to.write(text)
    else printed.push({ to, text })
  }
  const show = (): void => {
    isFree = true
    for (const { to, text } of printed.splice(0)) to.write(text)
  }
  child.stdout.on('data', (text: Buffer) => print(process.stdout, text))
  child.stderr.on('data', (text: Buffer) => print(process.stderr, text))
  const program = { isRunning: true }
  const exit = exitCodeOf(child).finally(() => {
    program.isRunning = false
  })
  while (program.isRunning) {
    const found = runningKernels().find(({ pid }) => pid === child.pid)
    if (found !== undefined) {
      const code = await top(found.path, {}).catch(() => 0)
      // q closes the display, and the program continues; Ctrl-C is for the program.
      if (code === EXIT_INTERRUPTED && program.isRunning) child.kill('SIGINT')
      break
    }
    await new Promise(resolve => setTimeout(resolve, POLL_MS))
  }
  show()
  return await exit
}
