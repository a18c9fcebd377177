import { check } from '../../checker/check.ts'
import { endsAndStarts, rescuedAsItStarts } from '../../../testing/machine/deathprograms.ts'

check('a CPU breaks a lock of a dead one, as that number starts again', {}, rescuedAsItStarts())

check('a CPU that ends its program and starts again is not taken for a dead one', {}, endsAndStarts())
