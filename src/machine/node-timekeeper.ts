import { workerData } from 'node:worker_threads'
import { Arena } from '../arena/arena.ts'
import type { Region } from '../arena/arena.ts'
import { clockSince } from './node-clock.ts'
import { keepTime } from './timekeeper.ts'

/** The worker thread behind the timekeeper of the Node machine. */
export interface TimekeeperBoot {
  readonly buffer: SharedArrayBuffer
  readonly region: Region
  readonly origin: number
}

const boot = workerData as TimekeeperBoot
keepTime(Arena.attach(boot.buffer).i32, boot.region, clockSince(boot.origin))
