import { parentPort } from 'node:worker_threads'
import { add, price, report } from './work.ts'

const work = { add, price, report }

parentPort?.on('message', ([fn, args]: [keyof typeof work, never[]]) => {
  parentPort?.postMessage((work[fn] as (...args: never[]) => unknown)(...args))
})
parentPort?.postMessage('ready')
