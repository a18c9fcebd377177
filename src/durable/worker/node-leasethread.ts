/** The thread that renews leases (leases.ts). It ends when it gets null. */
import { parentPort, workerData } from 'node:worker_threads'
import { SESSION_CHANNEL } from '../database/database.ts'
import { openPostgres } from '../database/node-postgres.ts'
import { type Claimed, Engine } from '../engine.ts'
import { beat, type LeaseMessage, type LeaseSettings } from './leases.ts'

const { url, lease, every, session } = workerData as LeaseSettings
const port = parentPort!
let jobs: ReadonlyMap<string, readonly Claimed[]> = new Map()
const over = new AbortController()
let wake: () => void = () => undefined

port.on('message', (message: LeaseMessage | null) => {
  if (message === null) {
    over.abort()
    wake()
  } else jobs = new Map(message)
})

const report = (error: Error): void => port.postMessage({ error: `a heartbeat has failed: ${error.message}` })

/** A database that is away, when the thread begins or later, is asked again soon: the lease is running. */
const AGAIN_MS = 500

const database = await openPostgres({ url, connections: 1, onError: report })
let engine: Engine | null = null
let isListening = false
const nothing = (): void => undefined
while (!over.signal.aborted) {
  let pause = every
  try {
    engine ??= await Engine.open(database, { lease, supervises: false, onError: report })
    await beat(engine, jobs)
    if (!isListening) await database.listen(SESSION_CHANNEL, nothing, nothing, session)
    isListening = true
    port.postMessage({})
  } catch (error) {
    report(error as Error)
    pause = Math.min(every, AGAIN_MS)
  }
  if (over.signal.aborted) break
  await new Promise<void>(resolve => {
    const timer = setTimeout(resolve, pause)
    wake = () => {
      clearTimeout(timer)
      resolve()
    }
  })
}
await engine?.close()
await database.close()
port.close()
