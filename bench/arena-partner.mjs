// The other side of arena/kick-to-wake: answers each turn when it is woken.
import { parentPort, workerData } from 'node:worker_threads'
import { CpuRecord } from '../src/machine/core/cpurecord.ts'
import { haltBlocking, kickCpu } from '../src/machine/core/halt.ts'

const { buffer, pair } = workerData
const i32 = new Int32Array(buffer)
const other = pair + CpuRecord.words
parentPort.on('message', ({ kind, turns }) => {
  parentPort.postMessage('ready')
  for (let i = 0; i < turns; i++) {
    if (kind === 'kick') {
      haltBlocking(i32, other, 1000)
      kickCpu(i32, pair)
    } else {
      Atomics.wait(i32, other + CpuRecord.mail, 0, 1000)
      Atomics.store(i32, other + CpuRecord.mail, 0)
      Atomics.store(i32, pair + CpuRecord.mail, 1)
      Atomics.notify(i32, pair + CpuRecord.mail, 1)
    }
  }
})
