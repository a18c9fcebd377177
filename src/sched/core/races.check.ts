/** The scheduler's races, explored in full. The broken variants are in races.test.ts. */
import { check } from '../../checker/check.ts'
import {
  adoptionAgainstSleep,
  arrivalAgainstOffline,
  arrivalAgainstTake,
  affinityAgainstWakeup,
  batchAgainstChange,
  batchDuringSwitch,
  checkpointAgainstWakeup,
  continueOnCpu,
  doubleWakeup,
  interruptInsideSwitch,
  interruptThenYield,
  lateTimer,
  offlineAgainstEnqueue,
  rotationAgainstWakeup,
  selfWakeup,
  stopAgainstSwitch,
  stopAgainstWakeup,
  turnsAgainstEachOther,
  twoBatches,
  wakeupAcrossTurns,
  wakeupAfterPick,
  wakeupAgainstSleep,
  wakeupDuringSwitch,
} from '../../../testing/sched/raceprograms.ts'

check('double wakeup', doubleWakeup())
check('a batch of wakeups against a change of priority', batchAgainstChange())
check('a batch of wakeups during the switch', batchDuringSwitch())
check('two batches of wakeups', twoBatches())
check('wakeup during the switch', wakeupDuringSwitch())
check('wakeup after the pick', wakeupAfterPick())
check('wakeup across turns', wakeupAcrossTurns())
check('turns of two event loops against each other', turnsAgainstEachOther())
check('a rotation of fair tasks against a wakeup', rotationAgainstWakeup())
check('a checkpoint that is due against a wakeup', checkpointAgainstWakeup())
check('self-wakeup', selfWakeup(interruptThenYield))
check('self-wakeup inside the switch', selfWakeup(interruptInsideSwitch))
check('wakeup against sleep', wakeupAgainstSleep())
check('stop against wakeup', stopAgainstWakeup())
check('stop against the switch', stopAgainstSwitch())
check('continue while still on the CPU', continueOnCpu())
check('affinity change against wakeup', affinityAgainstWakeup())
check('CPU going offline against enqueue', offlineAgainstEnqueue())
check('arrival against the CPU that takes it', arrivalAgainstTake())
check('arrival against a CPU going offline', arrivalAgainstOffline())
check('a late timer against the next sleep', lateTimer())
check('a timer that is adopted against the next sleep', adoptionAgainstSleep())
