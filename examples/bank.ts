/**
 * Bank transfers while workers are killed. A robust lock reports to the next owner that the last one died. An
 * undo log under the lock then restores the accounts. No money is lost or created.
 *
 *     npm run example bank
 */
import { Kernel, Mutex } from '../src/index.ts'
import { ACCOUNTS, bankWords, openAccounts, sumOf, undo } from './bank/transfers.ts'
import { waiting } from './terminal/waiting.ts'

console.log('6 clerks transfer money between accounts; 2 saboteurs die in the middle of a transfer')
await using kernel = await Kernel.boot({ cpus: 3 })
const work = await kernel.import<typeof import('./bank/transfers.ts')>(
  new URL('./bank/transfers.ts', import.meta.url),
)

const memory = new SharedArrayBuffer(bankWords * 4)
const lock = new Mutex({ robust: true, name: 'the ledger' })
openAccounts(memory)
const before = sumOf(memory)

let died = 0
kernel.on('death', () => died++)
const clerks = Array.from({ length: 6 }, (_, clerk) =>
  kernel.spawn(work.transfer, [memory, lock, clerk, 3000], { name: `clerk ${clerk}`, restartable: true }),
)
// The saboteurs end their CPU in the middle of a transfer. A clerk whose CPUs died three times would be lost:
// it could be the cause.
const saboteurs = Array.from({ length: 2 }, (_, n) =>
  kernel
    .spawn(work.dieInTransfer, [memory, lock, n], { name: `saboteur ${n}` })
    .catch((error: unknown) => (error as Error).name),
)
const ends = await waiting('the saboteurs die', Promise.all(saboteurs))
console.log(`the saboteurs ended with: ${ends.join(', ')}`)
const done = await waiting('the clerks transfer', Promise.all(clerks))
const repaired = done.reduce((total, { repaired: n }) => total + n, 0)
const transfers = done.reduce((total, { transfers: n }) => total + n, 0)
// The last saboteur may have died after all clerks had ended. So this thread takes the lock too, and repairs.
{
  using _audit = await lock.lockAsync()
  if (lock.ownerDied) {
    undo(memory)
    lock.makeConsistent()
  }
}
const after = sumOf(memory)
console.log(
  `${transfers} transfers between ${ACCOUNTS} accounts; CPUs that died: ${died}; half-done transfers undone: ${repaired}`,
)
console.log(`money before ${before}, after ${after}: ${before === after ? 'not a cent lost' : 'WRONG'}`)
if (before !== after) process.exitCode = 1
