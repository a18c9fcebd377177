import { CpuRecord } from '../../machine/core/cpurecord.ts'
import type { Cpu } from '../../machine/core/machine.ts'
import { importByUrl } from '../../machine/core/moduleimport.ts'
import { describeError, eject } from './eject.ts'
import { enablePolicy } from './extcpu.ts'
import { policyHref } from './extload.ts'
import type { PolicySource } from './policy.ts'
import type { Scheduler } from '../core/scheduler.ts'

const provided = new Map<string, PolicySource>()

/** A policy that this thread has already: it is not imported again. */
export function providePolicy(href: string, source: PolicySource): void {
  provided.set(href, source)
}

/**
 * How a CPU gets the policy of a new generation: it imports the module. Its tasks go on meanwhile, in turn
 * with its event loop, and take turns among themselves; from when the module is there, the policy is asked.
 */
export function policyImporter(cpu: Cpu): (s: Scheduler) => void {
  return s => {
    const href = policyHref(s)
    const { generation } = s.ext
    const known = provided.get(href)
    if (known !== undefined || href === '') {
      if (known !== undefined) enablePolicy(s, known)
      return
    }
    // The loop lets the event loop turn while there is mail.
    Atomics.add(cpu.i32, cpu.record + CpuRecord.mail, 1)
    void load(s, href, generation).finally(() => Atomics.sub(cpu.i32, cpu.record + CpuRecord.mail, 1))
  }
}

async function load(s: Scheduler, href: string, generation: number): Promise<void> {
  try {
    const module = (await importByUrl(href)) as { readonly default?: PolicySource }
    // Unloaded, and perhaps another one loaded, while this one was on its way.
    if (s.ext.generation === generation) enablePolicy(s, module.default as PolicySource)
  } catch (error) {
    if (s.ext.generation === generation)
      eject(s, 'threw', `policy: CPU ${s.cpu} cannot import ${href}: ${describeError(error)}`)
  }
}
