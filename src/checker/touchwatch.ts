import { CheckError } from './errors.ts'
import type { Machine } from './machine.ts'
import type { Setup } from './program.ts'
import { pending, siteName } from './runtime.ts'

/**
 * Finds code that touches shared memory without being instrumented. One schedule is run twice, and while a thread runs its
 * own code the memory is hidden: every byte has the same odd value, another one each time. What a thread writes past
 * the checker shows as a byte that is not odd; what it reads makes the two runs differ.
 */
export function watchTouches(machine: Machine, setup: Setup, schedule: Int32Array): void {
  const runs = [0x55, 0xaa].map(odd => runHidden(machine, setup, schedule, odd))
  const [a, b] = runs
  for (let at = 0; at < Math.max(a.length, b.length); at++) {
    if (a[at] === b[at]) continue
    const thread = schedule[at]
    throw new CheckError(
      'ERR_CHECK_UNINSTRUMENTED',
      `${machine.names[thread]} read shared memory before its step at ${place(a[at] ?? b[at])}, in code that is not instrumented: the checker cannot schedule around it. ${ADVICE}`,
    )
  }
}

const ADVICE =
  'Name the module in the check: `{ modules: [...] }`, or move the access into the check file; methods of a view that take a callback must be written as a loop'

function place(step: string): string {
  return siteName(Number(step.split(' ')[1]))
}

function runHidden(machine: Machine, setup: Setup, schedule: Int32Array, odd: number): string[] {
  const steps: string[] = []
  const hidden: Uint8Array[] = []
  const hide = (): void => {
    machine.memory.buffers.forEach(({ bytes }, i) => {
      if (hidden[i] === undefined) hidden[i] = bytes.slice()
      else hidden[i].set(bytes)
      bytes.fill(odd)
    })
  }
  const reveal = (thread: number): void => {
    machine.memory.buffers.forEach(({ bytes }, i) => {
      if (hidden[i] === undefined) return
      const written = firstOther(bytes, odd)
      bytes.set(hidden[i])
      if (written < 0) return
      throw new CheckError(
        'ERR_CHECK_UNINSTRUMENTED',
        `${machine.names[thread]} wrote shared memory (byte ${written} of buffer ${i}) before its step at ${siteName(pending.site[thread])}, in code that is not instrumented: the checker cannot schedule around it. ${ADVICE}`,
      )
    })
  }
  machine.hiding = { hide, reveal }
  try {
    machine.begin(setup)
    for (const thread of schedule) {
      if (((machine.enabled >>> thread) & 1) === 0) break
      machine.step(thread)
      const at = machine.log.length - 1
      steps.push(
        `${machine.log.kind[at]} ${machine.log.site[at]} ${machine.log.index[at]} ${machine.log.wrote[at]}`,
      )
    }
  } finally {
    machine.hiding = undefined
  }
  return steps
}

/** The first byte that is not `odd`, or -1. Four at a time: it is asked at every step. */
function firstOther(bytes: Uint8Array, odd: number): number {
  const words = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length >> 2)
  const word = Math.imul(odd, 0x01010101)
  let at = 0
  while (at < words.length && words[at] === word) at++
  for (let i = at * 4; i < bytes.length; i++) if (bytes[i] !== odd) return i
  return -1
}
