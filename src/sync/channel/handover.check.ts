import { check } from '../../checker/check.ts'
import { DIES } from '../../../testing/sync/checksetup.ts'
import { dyingWithPayload } from '../../../testing/sync/handoverprograms.ts'

check('the sender dies at any step: its payload is in the ring or freed', DIES(0), dyingWithPayload('sends'))

check(
  'the receiver dies at any step: its payload is in the ring or freed',
  DIES(0),
  dyingWithPayload('receives'),
)

check('a sender that replaces the latest value dies at any step', DIES(0), dyingWithPayload('replaces'))
