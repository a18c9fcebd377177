import { check } from '../checker/check.ts'
import { DIES } from './checksetup.ts'
import { dyingHolder } from './holderprograms.ts'

check('a holder dies at any step, beside another that lives', DIES(0), dyingHolder())
