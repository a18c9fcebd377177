import { Arena } from '../arena/arena.ts'
import type { CpuProgram } from './machine.ts'
import { hostPlatform } from './platform.ts'
import { WEB_CPU_ALIVE, type WebCpuBoot } from './web.ts'
import { webClock } from './web-clock.ts'
import { runCpu, WorkerCpu } from './workercpu.ts'

/** What the module of a CPU's Web Worker calls: it waits to be told which CPU it is, and runs the program. */
export function runWebCpu(program: CpuProgram): void {
  addEventListener('message', ({ data }: MessageEvent<WebCpuBoot>) => void run(program, data), { once: true })
}

async function run(program: CpuProgram, boot: WebCpuBoot): Promise<void> {
  // Held until the worker ends: how the machine learns that it has.
  await new Promise<void>(resolve => {
    void navigator.locks.request(boot.lock, () => {
      resolve()
      return new Promise(() => undefined)
    })
  })
  postMessage(WEB_CPU_ALIVE)
  const cpu = new WorkerCpu(Arena.attach(boot.buffer), boot.region, boot.id, webClock(boot.origin))
  await runCpu(cpu, program, boot.data, hostPlatform().turn)
  close()
}
