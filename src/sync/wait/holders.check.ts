import { check } from '../../checker/check.ts'
import { DIES } from '../../../testing/sync/checksetup.ts'
import { dyingHolder } from '../../../testing/sync/holderprograms.ts'

check('a holder dies at any step, beside another that lives', DIES(0), dyingHolder())
