/**
 * A computation that outlives its process three times. A process counts primes, and shows a bar. It is killed
 * at a quarter, at half and at three quarters: each time another one goes on where it was.
 *
 *     npm run example durable
 */
import { fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Durable } from '../src/durable/index.ts'
import { Kernel } from '../src/index.ts'

const LIMIT = 4_000_000
const KILL_AT = [0.25, 0.5, 0.75]

type News = { readonly begun: number } | { readonly share: number } | { readonly primes: number }

/** Starts the process that works, kills it three times, and starts another each time. */
async function supervise(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'durable-'))
  console.log(`the primes below ${LIMIT}, in a process that is killed ${KILL_AT.length} times`)
  try {
    for (const killAt of [...KILL_AT, Infinity]) {
      const primes = await workUntil(folder, killAt)
      if (primes !== null) return console.log(`there are ${primes} primes below ${LIMIT}`)
    }
    process.exitCode = 1
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Resolves with the result, or with null when the process was killed at this share. */
async function workUntil(folder: string, killAt: number): Promise<number | null> {
  const child = fork(import.meta.filename, [folder])
  let primes: number | null = null
  child.on('message', (news: News) => {
    if ('primes' in news) primes = news.primes
    else if ('begun' in news) {
      const from = news.begun === 0 ? 'begins' : `goes on at ${percent(news.begun)}`
      console.log(`process ${child.pid} ${from}`)
    } else {
      draw(news.share)
      if (news.share < killAt || child.killed) return
      child.kill('SIGKILL')
      console.log(`${lineEnd()}process ${child.pid} is killed at ${percent(news.share)}`)
    }
  })
  await new Promise(resolve => child.once('exit', resolve))
  if (primes !== null) console.log(`${lineEnd()}the last process has ended`)
  return primes
}

/** The process that works: all that it knows of others is the folder. */
async function work(folder: string): Promise<void> {
  await using kernel = await Kernel.boot({ cpus: 1 })
  const primes = await kernel.import<typeof import('./durable/primes.ts')>(
    new URL('./durable/primes.ts', import.meta.url),
  )
  await using durable = await Durable.open({ kernel, folder })
  // The same id is the same run: the first process starts it, the others find it.
  const run = await durable.start(primes.countPrimes, [LIMIT], { id: 'primes', checkpoint: 100 })
  const share = async (): Promise<number> => {
    const { progress } = await run.status()
    const { done, total } = (progress ?? { done: 0, total: 1 }) as { done: number; total: number }
    return done / total
  }
  send({ begun: await share() })
  const timer = setInterval(() => void share().then(now => send({ share: now })), 100)
  const count = await run.result()
  clearInterval(timer)
  send({ share: 1 })
  send({ primes: count })
}

function send(news: News): void {
  process.send?.(news)
}

let drawn = 0

/** On a terminal one bar that grows; else a line for each tenth. */
function draw(share: number): void {
  const width = 40
  const full = Math.round(share * width)
  const text = `[${'#'.repeat(full)}${'.'.repeat(width - full)}] ${percent(share)}`
  if (process.stdout.isTTY) process.stdout.write(`\r${text}`)
  else if (Math.floor(share * 10) > drawn) {
    drawn = Math.floor(share * 10)
    console.log(text)
  }
}

function lineEnd(): string {
  return process.stdout.isTTY ? '\n' : ''
}

function percent(share: number): string {
  return `${Math.floor(share * 100)} %`
}

const [, , given] = process.argv
if (given === undefined) await supervise()
else await work(given)
