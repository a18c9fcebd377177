import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { Arena } from '../../arena/memory/arena.ts'
import { noteGone, takeQuestion } from '../core/deaths.ts'
import { clockSince } from './node-clock.ts'
import { Lifeline, type LifelineEnd } from './node-lifeline.ts'
import { keepTime, type TimekeeperBoot } from '../timekeeper/timekeeper.ts'

/**
 * The worker thread behind a timekeeper in Node. It also sees CPUs go, for CPUs that ask (deaths.ts): it
 * never has anything else to do.
 */
const boot = workerData as TimekeeperBoot
const { i32 } = Arena.attach(boot.buffer)

/** Of the start of each CPU that it has been told of last. */
const lifelines = new Map<number, { readonly start: number; readonly lifeline: Lifeline }>()

function lookForDeaths(): void {
  if (parentPort === null || !takeQuestion(i32, boot.region)) return
  for (
    let told = receiveMessageOnPort(parentPort);
    told !== undefined;
    told = receiveMessageOnPort(parentPort)
  ) {
    const { cpu, start, near } = told.message as LifelineEnd
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
