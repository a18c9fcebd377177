/** Functions whose result differs from run to run, also by names that they got before the check. */
import { randomBytes, randomInt, randomUUID } from 'node:crypto'

const { random } = Math
const { now } = performance
const { now: today } = Date
const Day = Date
class Stamp extends Date {}

export const chances: Readonly<Record<string, () => unknown>> = {
  'Math.random': () => Math.random(),
  'Math.random, taken before': () => random(),
  'Math.random as a callback': () => [1].map(random),
  'Date.now': () => Date.now(),
  'Date.now, taken before': () => today(),
  'new Date': () => new Date(),
  'new Date, taken before': () => new Day(),
  'a class that extends Date': () => new Stamp(),
  Date: () => Date(),
  'Date with an argument': () => (Date as unknown as (n: number) => string)(5),
  'performance.now': () => performance.now(),
  'performance.now, taken before': () => now.call(performance),
  'performance.mark': () => performance.mark('one'),
  'process.hrtime': () => process.hrtime(),
  'process.hrtime.bigint': () => process.hrtime.bigint(),
  'a format of the time': () => new Intl.DateTimeFormat().formatToParts(),
  'crypto.randomUUID': () => crypto.randomUUID(),
  'randomUUID of node:crypto': () => randomUUID(),
  'randomBytes of node:crypto': () => randomBytes(4),
  'randomInt of node:crypto': () => randomInt(4),
  'a constructor that reads the clock': () => new Clock().at,
  'a constructor that reads a clock taken before': () => new Taken().at,
}

class Clock {
  at = 0
  constructor() {
    this.at = performance.now()
  }
}
class Taken {
  at = 0
  constructor() {
    this.at = random()
  }
}

/** The threads of a check in which one of these is called, and its result ignored. */
export function chanceThreads(run: () => unknown): (() => unknown)[] {
  const memory = new Int32Array(new SharedArrayBuffer(4))
  const body = (): void => {
    Atomics.add(memory, 0, 1)
    try {
      run()
    } catch {}
  }
  return [body, body]
}
