import { parentPort, workerData } from 'node:worker_threads'
import { Channel, Mutex, RwLock } from '../../src/sync/index.ts'

/** The other thread of the cross-thread rows: counts under a lock, drains a channel, or a port. */
const { mutex: mutexHandle, lock: lockHandle, channel: channelHandle, words } = workerData
const mutex = Mutex.from(mutexHandle)
const lock = RwLock.from(lockHandle)
const channel = Channel.from<unknown>(channelHandle)

function count(turns: number): void {
  for (let i = 0; i < turns; i++) {
    mutex.lockSync()
    words[0]++
    mutex.unlock()
  }
}

function bareCount(turns: number): void {
  for (let i = 0; i < turns; i++) {
    while (Atomics.compareExchange(words, 2, 0, 1) !== 0) Atomics.wait(words, 2, 1, 1)
    words[1]++
    Atomics.store(words, 2, 0)
    Atomics.notify(words, 2, 1)
  }
}

function readAndWrite(turns: number, writes: number): void {
  for (let i = 0; i < turns; i++) {
    if (i % 10 < writes) {
      lock.lockWriteSync()
      words[3]++
      lock.unlockWrite()
    } else {
      lock.lockReadSync()
      lock.unlockRead()
    }
  }
}

/** Turns of `section` that take about a microsecond. */
const SECTION = 3500

/** A section of about a microsecond that reads what the lock guards. */
function section(): number {
  let sum = words[3]
  for (let turn = 0; turn < SECTION; turn++) sum = (sum + turn) | 0
  return sum
}

/** Sections of a microsecond, of which `writes` of ten write: under the readers-writer lock, or the mutex. */
function sections(turns: number, writes: number, exclusive: boolean): void {
  for (let i = 0; i < turns; i++) {
    const isWrite = i % 10 < writes
    if (exclusive) mutex.lockSync()
    else if (isWrite) lock.lockWriteSync()
    else lock.lockReadSync()
    const sum = section()
    if (isWrite) words[3] = sum
    if (exclusive) mutex.unlock()
    else if (isWrite) lock.unlockWrite()
    else lock.unlockRead()
  }
}

parentPort?.on('message', order => {
  if (order.kind === 'count') count(order.turns)
  else if (order.kind === 'bare') bareCount(order.turns)
  else if (order.kind === 'rw') readAndWrite(order.turns, order.writes)
  else if (order.kind === 'sections') sections(order.turns, order.writes, order.exclusive)
  else if (order.kind === 'drain') for (let i = 0; i < order.turns; i++) channel.receiveSync()
  else if (order.kind === 'port') {
    let left = order.turns
    order.port.on('message', () => {
      if (--left > 0) return
      order.port.close()
      parentPort?.postMessage('done')
    })
    return
  }
  parentPort?.postMessage('done')
})
