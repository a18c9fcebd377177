/** A client on its own thread: sends a request every 10 ms, and reports the time of the slowest answer. */
import { get } from 'node:http'
import { parentPort, workerData } from 'node:worker_threads'

let slowest = 0
let answers = 0
let open = 0

const asking = setInterval(() => {
  const start = performance.now()
  open++
  get(workerData as string, response => {
    response.resume()
    response.on('end', () => {
      slowest = Math.max(slowest, performance.now() - start)
      answers++
      open--
    })
  })
}, 10)

parentPort!.once('message', () => {
  clearInterval(asking)
  const waiting = setInterval(() => {
    if (open > 0) return
    clearInterval(waiting)
    parentPort!.postMessage({ slowest, answers })
    parentPort!.close()
  }, 5)
})
