import { check } from '../../checker/check.ts'
import { endsAndStarts, rescuedAsItStarts } from '../../../testing/machine/deathprograms.ts'

check('a CPU breaks a lock of a dead CPU while that CPU starts again', {}, rescuedAsItStarts())

check('a CPU that ends its program and starts again does not count as dead', {}, endsAndStarts())
