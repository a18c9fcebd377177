import { check } from '../../checker/check.ts'
import { oldHandleAgainstReuse } from '../../../testing/futex/reuseprograms.ts'

check('an old handle against its slot being freed and made anew', oldHandleAgainstReuse())
