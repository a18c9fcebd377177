import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { Arena } from '../../arena/memory/arena.ts'
import { noteGone, takeDeathRequest } from '../core/deaths.ts'
import { clockSince } from './node-clock.ts'
import { Lifeline, type LifelineEnd } from './node-lifeline.ts'
import { keepTime, type TimekeeperBoot } from '../timekeeper/timekeeper.ts'

/**
 * The worker thread of a timekeeper in Node. It also tests for dead CPUs when a CPU asks (deaths.ts), because
 * it is never busy.
 */
const boot = workerData as TimekeeperBoot
const { i32 } = Arena.attach(boot.buffer)

/** The lifeline of the latest known start of each CPU. */
const lifelines = new Map<number, { readonly start: number; readonly lifeline: Lifeline }>()

function lookForDeaths(): void {
  if (parentPort === null || !takeDeathRequest(i32, boot.region)) return
  for (
    let received = receiveMessageOnPort(parentPort);
    received !== undefined;
    received = receiveMessageOnPort(parentPort)
  ) {
    const { cpu, start, near } = received.message as LifelineEnd
    lifelines.get(cpu)?.lifeline.close()
    lifelines.set(cpu, { start, lifeline: new Lifeline(near) })
  }
  for (const [cpu, { start, lifeline }] of lifelines) {
    if (!lifeline.cut) continue
    noteGone(i32, boot.region, cpu, start)
    lifelines.delete(cpu)
  }
}

keepTime(i32, boot.region, clockSince(boot.origin), lookForDeaths)
