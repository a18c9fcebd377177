import { type ChildProcess, spawn } from 'node:child_process'
import { serveView } from '../view/node-server.ts'
import { asSimulationRequest, emptySimulation, type SimulationData } from '../view/simulation.ts'
import {
  refusal,
  type ViewListener,
  type ViewReply,
  type ViewRequest,
  type ViewSource,
} from '../view/source.ts'
import { exitCodeOf } from './program.ts'
import { addressLine, interrupted } from './servedpage.ts'

/** Starts the program with a seed. It must have a channel to this process. */
type StartSeed = (seed: number) => ChildProcess

/** A simulated program that stops between its steps. Another seed starts it again. */
class SimulationSource implements ViewSource {
  private readonly title: string
  private readonly start: StartSeed
  private readonly listeners = new Set<ViewListener>()
  private data: SimulationData
  private child: ChildProcess
  exitCode = 0

  constructor(title: string, seed: number, start: StartSeed) {
    this.title = title
    this.start = start
    this.data = emptySimulation(seed)
    this.child = this.launch(seed)
  }

  open(listen: ViewListener): () => void {
    const { title } = this
    listen({ kind: 'hello', about: { title, cpus: 0, live: true, control: false, panels: ['simulation'] } })
    listen({ kind: 'simulation', data: this.data })
    this.listeners.add(listen)
    return () => this.listeners.delete(listen)
  }

  async ask(request: ViewRequest): Promise<ViewReply> {
    if (request.op !== 'simulation') return refusal(request)
    const wanted = asSimulationRequest(request.data)
    if (wanted === undefined)
      return { ok: false, error: `${JSON.stringify(request.data)}: a simulation cannot do that` }
    if (wanted.kind === 'seed') {
      this.end()
      this.set(emptySimulation(wanted.seed))
      this.child = this.launch(wanted.seed)
      return { ok: true, data: null }
    }
    if (!this.child.connected)
      return { ok: false, error: 'the program has ended; take a seed to start it again' }
    this.child.send(wanted.kind)
    return { ok: true, data: null }
  }

  end(): void {
    this.child.removeAllListeners('message')
    this.child.kill('SIGKILL')
  }

  private launch(seed: number): ChildProcess {
    const child = this.start(seed)
    child.on('message', data => this.set(data as SimulationData))
    void exitCodeOf(child).then(exitCode => {
      if (child !== this.child) return
      this.exitCode = exitCode
      this.set({ ...this.data, state: 'ended', exitCode })
    })
    return child
  }

  private set(data: SimulationData): void {
    this.data = data
    for (const listen of this.listeners) listen({ kind: 'simulation', data })
  }
}

/** Runs a simulated program under a page that steps it, until Ctrl-C. Returns the last exit code. */
export async function runSimulationView(
  node: string,
  command: readonly string[],
  env: (seed: number) => NodeJS.ProcessEnv,
  seed: number,
  title: string,
): Promise<number> {
  const source = new SimulationSource(title, seed, wanted =>
    spawn(node, command, { env: env(wanted), stdio: ['inherit', 'inherit', 'inherit', 'ipc'] }),
  )
  const server = await serveView(source)
  process.stderr.write(addressLine(server.url))
  await interrupted()
  source.end()
  await server.close()
  return source.exitCode
}
