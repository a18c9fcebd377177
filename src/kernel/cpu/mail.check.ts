import { check } from '../../checker/check.ts'
import { messageAgainstBegin } from '../../../testing/kernel/mailprograms.ts'

check('a message for a task that begins meanwhile is sent, or asked for', {}, () => messageAgainstBegin())
