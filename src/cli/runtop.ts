import { spawn } from 'node:child_process'
import { runningKernels } from '../trace/node-control.ts'
import { ended } from './run.ts'
import { EXIT_INTERRUPTED, top } from './top/top.ts'

const LOOK_MS = 50

/** Runs a program and watches its first kernel. What it prints is kept until the terminal is free again. */
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
  const exit = ended(child).finally(() => {
    program.isRunning = false
  })
  while (program.isRunning) {
    const found = runningKernels().find(({ pid }) => pid === child.pid)
    if (found !== undefined) {
      const code = await top(found.path, {}).catch(() => 0)
      // q leaves the picture, and the program goes on; Ctrl-C is meant for the program.
      if (code === EXIT_INTERRUPTED && program.isRunning) child.kill('SIGINT')
      break
    }
    await new Promise(resolve => setTimeout(resolve, LOOK_MS))
  }
  show()
  return await exit
}
