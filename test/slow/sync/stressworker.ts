import { parentPort } from 'node:worker_threads'
import { type Order, perform } from './stressprograms.ts'

parentPort?.on('message', (order: Order) => {
  perform(order).then(
    value => parentPort?.postMessage({ value }),
    error => parentPort?.postMessage({ error: String(error?.stack ?? error) }),
  )
})
