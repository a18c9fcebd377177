import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { basename, join } from 'node:path'
import type { KernelView } from '../kernel/boot/view.ts'
import { answer, ControlSession, type ControlReply, type ControlRequest, type Hello } from './control.ts'

/**
 * The socket of a running kernel, one for each process and kernel, in a folder that only its user can enter.
 * It does not keep the program alive. It is removed when the kernel closes or the process exits.
 */

/** The folder of this user's sockets. Throws when another user can enter it. */
function controlFolder(create: boolean): string {
  const { uid } = userInfo()
  const folder = join(process.env.HEDDLE_RUN_DIR ?? tmpdir(), `heddle-${uid}`)
  if (create) mkdirSync(folder, { recursive: true, mode: 0o700 })
  if (!existsSync(folder)) return folder
  const found = statSync(folder)
  if (uid >= 0 && (found.uid !== uid || (found.mode & 0o077) !== 0)) {
    throw new Error(`${folder} can be entered by other users; remove it, or give it mode 700`)
  }
  return folder
}

let kernels = 0

/** Listens for requests. Returns the function that stops it. Without a socket the kernel runs on. */
export function listenForControl(view: KernelView): () => void {
  if (process.platform === 'win32') return () => undefined
  let path: string
  try {
    path = join(controlFolder(true), `${process.pid}-${kernels++}.sock`)
    rmSync(path, { force: true })
  } catch {
    return () => undefined
  }
  const hello: Hello = {
    pid: process.pid,
    program: basename(process.argv[1] ?? process.execPath),
    cpus: view.s.cpus,
  }
  const server = createServer(socket => {
    const session = new ControlSession(view)
    socket.once('close', () => session.close())
    serve(socket, request => answer(view, hello, request, session))
  })
  const remove = (): void => rmSync(path, { force: true })
  server.on('error', () => server.close())
  try {
    server.listen(path, () => chmodSync(path, 0o600))
  } catch {
    // For example `node --permission` without --allow-net.
    return () => undefined
  }
  server.unref()
  process.once('exit', remove)
  return () => close(server, remove)
}

function close(server: Server, remove: () => void): void {
  process.off('exit', remove)
  server.close()
  remove()
}

function serve(socket: Socket, reply: (request: unknown) => ControlReply | Promise<ControlReply>): void {
  socket.unref()
  socket.on('error', () => socket.destroy())
  let last: Promise<void> = Promise.resolve()
  let waiting = 0
  onLines(socket, line => {
    let request: unknown
    try {
      request = JSON.parse(line)
    } catch {
      socket.write(`${JSON.stringify({ ok: false, error: 'a request is one line of JSON' })}\n`)
      return
    }
    // Replies are in the order of the requests, also if one takes time.
    const answered = reply(request)
    if (!(answered instanceof Promise) && waiting === 0) {
      socket.write(`${JSON.stringify(answered)}\n`)
      return
    }
    waiting++
    last = last.then(async () => {
      socket.write(`${JSON.stringify(await answered)}\n`)
      waiting--
    })
  })
}

/** Requests are much shorter. A longer one closes the connection. */
const LINE_MAX = 1 << 24

function onLines(socket: Socket, onLine: (line: string) => void): void {
  let rest = ''
  socket.setEncoding('utf8')
  socket.on('data', (text: string) => {
    rest += text
    if (rest.length > LINE_MAX) socket.destroy()
    const lines = rest.split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) onLine(line)
  })
}

/** The sockets of this user's kernels, the newest last. Removes sockets without a listener. */
export function runningKernels(): { readonly pid: number; readonly path: string }[] {
  const folder = controlFolder(false)
  if (!existsSync(folder)) return []
  const found: { pid: number; path: string; at: number }[] = []
  for (const file of readdirSync(folder)) {
    const pid = Number(/^(\d+)-\d+\.sock$/.exec(file)?.[1])
    if (!Number.isInteger(pid)) continue
    const path = join(folder, file)
    if (!isAlive(pid)) rmSync(path, { force: true })
    // A kernel that closes in between removes its socket itself.
    const at = statSync(path, { throwIfNoEntry: false })?.mtimeMs
    if (at !== undefined) found.push({ pid, path, at })
  }
  return found.sort((a, b) => a.at - b.at).map(({ pid, path }) => ({ pid, path }))
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** One connection to a running kernel; requests are answered in order. */
export class ControlClient {
  private readonly socket: Socket
  private readonly waiting: { resolve: (reply: ControlReply) => void; reject: (error: Error) => void }[] = []
  private ended: Error | null = null

  private constructor(socket: Socket) {
    this.socket = socket
    onLines(socket, line => this.waiting.shift()?.resolve(JSON.parse(line) as ControlReply))
    const end = (): void => this.end(new Error('the program has ended'))
    socket.on('error', end)
    socket.on('close', end)
  }

  static connect(path: string): Promise<ControlClient> {
    return new Promise((resolve, reject) => {
      const socket = connect(path)
      socket.once('error', reject)
      socket.once('connect', () => {
        socket.off('error', reject)
        resolve(new ControlClient(socket))
      })
    })
  }

  ask(request: ControlRequest): Promise<ControlReply> {
    if (this.ended !== null) return Promise.reject(this.ended)
    return new Promise((resolve, reject) => {
      this.waiting.push({ resolve, reject })
      this.socket.write(`${JSON.stringify(request)}\n`)
    })
  }

  close(): void {
    this.end(new Error('the connection was closed'))
    this.socket.destroy()
  }

  private end(error: Error): void {
    this.ended ??= error
    for (const { reject } of this.waiting.splice(0)) reject(error)
  }
}
