import { CpuRecord } from '../../machine/core/cpurecord.ts'
import type { Cpu } from '../../machine/core/machine.ts'
import { importByUrl } from '../../machine/core/moduleimport.ts'
import { describeError, eject } from './eject.ts'
import { enablePolicy } from './extcpu.ts'
import { policyHref } from './extload.ts'
import type { PolicySource } from './policy.ts'
import type { Scheduler } from '../core/scheduler.ts'

const provided = new Map<string, PolicySource>()

/** The policy that this thread has imported: it is not imported again. */
export function providePolicy(href: string, source: PolicySource): void {
  provided.set(href, source)
}

/**
 * How a CPU gets the policy of a new generation: it imports the module. During the import its tasks run in
 * turn, and so does its event loop; when the module is loaded, the CPU calls the policy.
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
    // The CPU loop runs turns of the event loop while there is mail.
    Atomics.add(cpu.i32, cpu.record + CpuRecord.mail, 1)
    void load(s, href, generation).finally(() => Atomics.sub(cpu.i32, cpu.record + CpuRecord.mail, 1))
  }
}

async function load(s: Scheduler, href: string, generation: number): Promise<void> {
  try {
    const module = (await importByUrl(href)) as { readonly default?: PolicySource }
    // The policy was unloaded during the import, and another one may be loaded.
    if (s.ext.generation === generation) enablePolicy(s, module.default as PolicySource)
  } catch (error) {
    if (s.ext.generation === generation)
      eject(s, 'threw', `policy: CPU ${s.cpu} cannot import ${href}: ${describeError(error)}`)
  }
}
