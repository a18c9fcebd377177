import { check } from '../../checker/check.ts'
import { oldHandleAgainstReuse } from '../../../testing/futex/reuseprograms.ts'

check('an old handle while its slot is freed and reused', oldHandleAgainstReuse())
