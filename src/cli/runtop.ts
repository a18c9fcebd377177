import { spawn } from 'node:child_process'
import { runningKernels } from '../trace/node-control.ts'
import { ended } from './run.ts'
import { top } from './top/top.ts'

const LOOK_MS = 50

/** Runs a program and watches its first kernel. What it prints is kept until the terminal is free again. */
export async function runUnderTop(
  node: string,
  command: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<number> {
  const child = spawn(node, command, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const printed: { readonly to: NodeJS.WriteStream; readonly text: Buffer }[] = []
  child.stdout.on('data', (text: Buffer) => printed.push({ to: process.stdout, text }))
  child.stderr.on('data', (text: Buffer) => printed.push({ to: process.stderr, text }))
  const program = { isRunning: true }
  const exit = ended(child).finally(() => {
    program.isRunning = false
  })
  while (program.isRunning) {
    const found = runningKernels().find(({ pid }) => pid === child.pid)
    if (found !== undefined) {
      await top(found.path, {}).catch(() => undefined)
      break
    }
    await new Promise(resolve => setTimeout(resolve, LOOK_MS))
  }
  // Whoever quits the picture ends the program, as Ctrl-C would.
  if (program.isRunning) child.kill('SIGINT')
  const code = await exit
  for (const { to, text } of printed) to.write(text)
  return code
}
