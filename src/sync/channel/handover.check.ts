import { check } from '../../checker/check.ts'
import { DIES } from '../../../testing/sync/checksetup.ts'
import { dyingWithPayload } from '../../../testing/sync/handoverprograms.ts'

check(
  'a sender that dies at any step leaves its payload to the ring or to nobody',
  DIES(0),
  dyingWithPayload('sends'),
)

check(
  'a receiver that dies at any step leaves its payload to the ring or to nobody',
  DIES(0),
  dyingWithPayload('receives'),
)

check('a sender that replaces the latest value dies at any step', DIES(0), dyingWithPayload('replaces'))
