import { workerData } from 'node:worker_threads'
import { Arena } from '../arena/arena.ts'
import { clockSince } from './node-clock.ts'
import { keepTime, type TimekeeperBoot } from './timekeeper.ts'

/** The worker thread behind a timekeeper in Node. */
const boot = workerData as TimekeeperBoot
keepTime(Arena.attach(boot.buffer).i32, boot.region, clockSince(boot.origin))
