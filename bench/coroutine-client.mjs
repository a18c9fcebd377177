/**
 * Sends a request to a server every few milliseconds, without waiting for answers, until it is stopped. Then
 * it reports the time of each answer.
 */
import { Agent, get } from 'node:http'
import { parentPort, workerData } from 'node:worker_threads'

const agent = new Agent({ keepAlive: true })
const every_ms = 4
let latencies = []
let open = 0
let timer

function ask() {
  open++
  send(performance.now())
}

function send(start) {
  get({ port: workerData.port, agent }, response => {
    response.resume()
    response.on('end', () => {
      latencies.push(performance.now() - start)
      open--
    })
  }).on('error', error => {
    // The server closed a kept connection at this moment: send again; the time continues.
    if (error.code !== 'ECONNRESET') throw error
    send(start)
  })
}

parentPort.on('message', message => {
  if (message === 'start') {
    latencies = []
    timer = setInterval(ask, every_ms)
    return
  }
  clearInterval(timer)
  const waiting = setInterval(() => {
    if (open > 0) return
    clearInterval(waiting)
    parentPort.postMessage(latencies)
  }, 5)
})
