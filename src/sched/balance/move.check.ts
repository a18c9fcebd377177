/**
 * The move of a started task. Two threads: every interleaving. Three: all orders without preemption. A CPU
 * that dies at any step of it is in ../recovery/recovery.check.ts. The broken variants are in move.test.ts.
 */
import { check } from '../../checker/check.ts'
import { deeds, moveAgainst, packAsleepAgainst } from '../../../testing/sched/moveprograms.ts'
import { killTask } from '../core/sleep.ts'
import { wakeupTask } from '../core/wakeup.ts'

const BOUNDED = { explorer: 'preemption-bounded', preemptions: 0, allowIncomplete: true } as const

check('a move against the CPU that takes the task', moveAgainst(undefined, true))
for (const [name, deed] of Object.entries(deeds)) {
  check(`a move against ${name}`, moveAgainst(deed, false))
  check(`a move against ${name} and the CPU that takes it (no preemption)`, BOUNDED, moveAgainst(deed, true))
}
for (const [name, wake] of Object.entries({ wakeup: wakeupTask, kill: killTask })) {
  check(`packing a sleeping task against its ${name}`, packAsleepAgainst(wake, false))
  check(
    `packing a sleeping task against its ${name} and the CPU that takes it (no preemption)`,
    BOUNDED,
    packAsleepAgainst(wake, true),
  )
}
