/**
 * A computation that outlives its CPU and its process. Its CPU is killed: it goes on from its last
 * checkpoint. Then its whole process is killed: another process goes on from the bytes on the disk. The
 * result is right.
 *
 *     npm run example survivor
 */
import { fork } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Kernel } from '../src/index.ts'
import { waiting } from './terminal/waiting.ts'

const LIMIT = 3_000_000

const pause = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms))

/** Starts the process that computes, kills it once, and starts another. */
async function supervise(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'survivor-'))
  const image = join(folder, 'image.bin')
  console.log(`the longest Collatz sequence below ${LIMIT}, in a process of its own`)
  const first = fork(import.meta.filename, [image])
  await new Promise<void>(resolve => first.on('message', message => message === 'saved' && resolve()))
  first.kill('SIGKILL')
  await new Promise(resolve => first.on('exit', resolve))
  console.log(`the process was killed; ${readFileSync(image).length} bytes are left of it`)
  const second = fork(import.meta.filename, [image])
  await new Promise(resolve => second.on('exit', resolve))
  rmSync(folder, { recursive: true })
  process.exitCode = second.exitCode ?? 1
}

async function compute(image: string): Promise<void> {
  await using kernel = await Kernel.boot({ cpus: 2 })
  const work = await kernel.import<typeof import('./survivor/collatz.ts')>(
    new URL('./survivor/collatz.ts', import.meta.url),
  )
  if (existsSync(image)) {
    console.log('another process goes on with these bytes')
    const task = kernel.resume<{ start: number; length: number }>(readFileSync(image))
    const { start, length } = await waiting('it computes', task)
    console.log(`${start} has the longest sequence: ${length} numbers`)
    return
  }
  const task = kernel.spawn(work.longestCollatz, [LIMIT], { checkpoint: 20 })
  task.catch(() => undefined)
  while (task.status.checkpoint === null) await pause(5)
  const { cpu, stateBytes } = task.status
  console.log(`a checkpoint is written: ${stateBytes} bytes; CPU ${cpu} is killed, and the task with it`)
  const died = new Promise(resolve => kernel.on('death', resolve))
  kernel.spawn(work.killCpu, [], { affinity: [cpu ?? 0], priority: 'high' }).catch(() => undefined)
  await died
  while (task.status.state !== 'running') await pause(5)
  console.log(`the task goes on, on CPU ${task.status.cpu}`)
  const bytes = await task.copyToBytes()
  writeFileSync(`${image}.new`, bytes)
  renameSync(`${image}.new`, image)
  process.send?.('saved')
  await task
}

const [, , file] = process.argv
if (file === undefined) await supervise()
else await compute(file)
