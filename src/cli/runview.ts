import { spawn } from 'node:child_process'
import { runningKernels } from '../trace/node-control.ts'
import { ControlSource } from '../view/node-controlsource.ts'
import { serveView } from '../view/node-server.ts'
import { exitCodeOf } from './program.ts'
import { addressLine, interrupted } from './servedpage.ts'

const POLL_MS = 10

/**
 * Runs a program and shows its first kernel on a page. When the program has ended, the page stays until
 * Ctrl-C: a short program is over before the page is open.
 */
export async function runUnderView(
  node: string,
  command: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<number> {
  const child = spawn(node, command, { env, stdio: 'inherit' })
  const program = { isRunning: true }
  const exit = exitCodeOf(child).finally(() => {
    program.isRunning = false
  })
  const source = await connectTo(child.pid, program)
  if (source === null) return await exit
  const server = await serveView(source)
  process.stderr.write(addressLine(server.url))
  const code = await exit
  process.stderr.write('heddle view: the program has ended; the page stays until Ctrl-C\n')
  await interrupted()
  await server.close()
  source.close()
  return code
}

/** Connects to the first kernel of the program. Null: it ended without one. */
async function connectTo(
  pid: number | undefined,
  program: { readonly isRunning: boolean },
): Promise<ControlSource | null> {
  while (program.isRunning) {
    const found = runningKernels().find(kernel => kernel.pid === pid)
    const source = found && (await ControlSource.connect(found.path).catch(() => null))
    if (source) return source
    await new Promise(resolve => setTimeout(resolve, POLL_MS))
  }
  return null
}
