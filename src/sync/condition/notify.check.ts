import { check } from '../../checker/check.ts'
import { BOUNDED, DIES, ONE } from '../../../testing/sync/checksetup.ts'
import { notify } from './notify.ts'
import { notifyByStranger } from '../../../testing/sync/notifyprograms.ts'

check(
  `a notify of two waiters by a thread that does not know their mutex, as the time of the first is over ${ONE}`,
  BOUNDED,
  notifyByStranger(notify),
)
check(
  'the notifier of two waiters, which does not know their mutex, dies at any step',
  DIES(2),
  notifyByStranger(notify, true),
)
