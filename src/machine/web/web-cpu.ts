import { Arena } from '../../arena/memory/arena.ts'
import { CpuRecord, cpuRecord } from '../core/cpurecord.ts'
import type { CpuProgram } from '../core/machine.ts'
import { sealed } from '../core/mail.ts'
import { hostPlatform } from '../core/platform.ts'
import type { WebCpuBoot } from './webmachine.ts'
import { webClock } from './web-clock.ts'
import { joinHub } from './webhub.ts'
import { runCpu, WorkerCpu } from '../core/workercpu.ts'

/** The entry of a CPU's Web Worker: waits for the message that says which CPU it is, and runs the program. */
export function runWebCpu(program: CpuProgram): void {
  addEventListener('message', ({ data }: MessageEvent<WebCpuBoot>) => void run(program, data), { once: true })
}

async function run(program: CpuProgram, boot: WebCpuBoot): Promise<void> {
  // Held until the worker ends: the death watcher detects the end by this lock.
  await new Promise<void>(resolve => {
    void navigator.locks.request(boot.lock, () => {
      resolve()
      return new Promise(() => undefined)
    })
  })
  const arena = Arena.attach(boot.buffer)
  // The CPU was terminated before it had the lock, and the death watcher has reported it gone.
  if (Atomics.load(arena.i32, cpuRecord(boot.region, boot.id) + CpuRecord.gone) === boot.start) return
  boot.deathWatcher.postMessage(boot.start)
  joinHub(boot.buffer, boot.deathWatcher)
  const cpu = new WorkerCpu(arena, boot.region, boot.id, webClock(boot.origin))
  cpu.post = (message, transfer) =>
    postMessage(sealed(message), { transfer: [...(transfer ?? [])] as Transferable[] })
  addEventListener('message', ({ data }) => cpu.receive(data))
  await runCpu(cpu, program, boot.data, hostPlatform().turn)
  close()
}
