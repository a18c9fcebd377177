import { check } from '../../checker/check.ts'
import { dieWhileItEnds, endAgainstSleep } from '../../../testing/kernel/completionprograms.ts'

check('the booting thread falls asleep while two jobs end: it is woken', {}, () =>
  endAgainstSleep(false, false),
)
check('it falls asleep while jobs end in quick succession: it is woken', {}, () =>
  endAgainstSleep(false, true),
)
check('it dozes while jobs end in quick succession: it is woken, or its doze ends', {}, () =>
  endAgainstSleep(true, true),
)
check(
  'a CPU dies while it ends a job and wakes the booting thread: that thread does not sleep on',
  { crashes: { max: 1, threads: ['CPU'] } },
  () => dieWhileItEnds(),
)
