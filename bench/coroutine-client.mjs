/**
 * Asks a server every few milliseconds, whether or not it has answered, until told to stop; then says how
 * long each answer took.
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
    // A connection that was kept open and closed by the other side just then: ask again, the time goes on.
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
