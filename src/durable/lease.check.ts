/**
 * The lease and fencing protocol of durable runs, over a model of its database (testing/durable). A worker is
 * a thread. A zombie is a worker whose thread stops for any length of time. The lapse of a lease is a step
 * of the supervisor, which knows no time. So the database may answer late: after the lapse, and after the
 * next claim. In the checks of deaths a worker ends for good before any of its steps, also between a commit
 * and its answer. The broken variants are in leaseraces.test.ts.
 *
 * A run, its epoch, its image, its journal and its messages are behind the lock of the run's row; each job of
 * the engine has a row of its own. Lock order: the job, then the run.
 *
 *       run         the job that it names      changes
 *   [1] queued      created                    [2] claim; [7] cancel
 *   [2] running     active; retry when the     [2] claim after a lapse; [1] release, [3] sleep, [4] wait;
 *                   lease is over              [5] [6] finish; [7] finish, by a worker that was asked to
 *   [3] asleep      created; it starts later   [2] claim; [7] cancel
 *   [4] waiting     none; created, if the      [1] send; [2] claim, when the time is over; [7] cancel
 *                   wait has a time limit
 *   [5] completed   any; it is stale           none
 *   [6] failed      the same                   [1] restart
 *   [7] cancelled   the same                   [1] restart
 *
 * A job that the run does not name is stale: its claim ends it.
 *
 * The takeover. (A) and (B) are one transaction, and so are (C), (D) and the write.
 *
 *   zombie, epoch 1                          supervisor, new owner
 *   ---------------                          ---------------------
 *   computes
 *                                            the lease is over: the job is `retry`
 *                                            (A) fetches the job: the next attempt
 *                                            (B) epoch = 2; reads the newest image
 *   (C) locks the run
 *   (D) the epoch is not its own: rolls
 *       back, and kills its task
 *
 * A statement of a connection that the worker has given up.
 *
 *   first connection                         second connection of the same worker
 *   ----------------                         ------------------------------------
 *   checkpoint 1 is sent; the network fails
 *                                            checkpoint 1 once more, then checkpoint 2
 *   (C) (D) the epoch is the same
 *   (E) image 1 is not newer than 2: stays
 *
 * The same with `receive`: (F) it reads the journal before it takes a message, so that the late statement
 * takes none.
 *
 * A wait against a message.
 *
 *   worker                                   sender
 *   ------                                   ------
 *   receive: no message
 *                                            locks the run: it runs, so the message alone is stored
 *   (C) locks the run
 *   (G) looks for messages now: queued, with a job
 *
 * In the other order the sender finds `waiting`, and sends the job.
 *
 * A wait against a cancel.
 *
 *   worker                                   canceller
 *   ------                                   ---------
 *                                            (H) finds it running: asks its worker
 *   (I) it waits, and sends a job although
 *       there is no message
 *   (J) the next claim hands the cancel on
 *
 * A repair of a run whose job an operator has deleted.
 *
 *   worker                                   repairer
 *   ------                                   --------
 *                                            finds the run and no job
 *   (C) (D) finishes: the epoch is its own
 *                                            (M) locks the run, and looks again: it has ended
 *
 * A cancel locks the run alone. The job of a run that it ends is stale, (K), and is tidied away in another
 * transaction. `once`:
 *
 *   zombie, epoch 1                          new owner, epoch 2
 *   ---------------                          ------------------
 *   no result is stored: runs the function
 *                                            no result is stored: runs the function
 *   (D) fenced: its result goes nowhere
 *                                            (L) stores its result, unless there is one; returns what is stored
 */
import { check } from '../checker/check.ts'
import { type Deed, type Scene, scene } from '../../testing/durable/leaseprograms.ts'

const PLAIN = { rerun: false }
/** The first thread dies: the owner, or the first taker. */
const MORTAL = { ...PLAIN, crashes: { max: 1, threads: [0] } }

function explore(name: string, given: Scene, deathToo = true): void {
  check(name, PLAIN, scene(given))
  if (deathToo) check(`${name}, and the worker dies`, MORTAL, scene(given))
}

const writes: readonly Deed[] = ['checkpoint', 'once', 'sleep', 'release', 'receive', 'finish', 'fail']

explore('a zombie and the next owner write images and finish', {
  owner: ['beat', 'checkpoint', 'checkpoint', 'finish'],
  takers: [['checkpoint', 'checkpoint', 'finish']],
  lapses: [1],
})
explore(
  'two zombies and a third owner',
  {
    owner: ['beat', 'checkpoint', 'finish'],
    takers: [
      ['checkpoint', 'finish'],
      ['checkpoint', 'finish'],
    ],
    lapses: [1, 1],
  },
  false,
)
explore('two workers claim a run, and its lease is over', {
  takers: [
    ['checkpoint', 'finish'],
    ['checkpoint', 'finish'],
  ],
  lapses: [1],
})
explore('a worker claims a run and never learns of it', { takers: [[], ['finish']], lapses: [1] })
explore('a zombie leaves a run that a worker claims when it sleeps', {
  owner: ['checkpoint', 'sleep'],
  takers: [['checkpoint', 'release'], ['finish']],
  jobs: [1, 2, 3],
  lapses: [1],
})
explore('a run that is released is claimed, and its lease is over', {
  owner: ['release'],
  takers: [['checkpoint', 'finish'], ['finish']],
  jobs: [2],
  lapses: [2],
})

explore('`once` of a zombie and of the next owner', {
  owner: ['once', 'finish'],
  takers: [['once', 'finish']],
  lapses: [1],
})
explore(
  '`once` of two zombies and of a third owner',
  {
    owner: ['once', 'finish'],
    takers: [
      ['once', 'finish'],
      ['once', 'finish'],
    ],
    lapses: [1, 1],
  },
  false,
)
explore('`once` of two tasks of a run, and of the next owner', {
  owner: ['once', 'finish'],
  beside: 'once, in another task',
  takers: [['once', 'finish']],
  lapses: [1],
})

explore('a run waits while a message is sent, and a worker goes on with it', {
  owner: ['receive', 'finish'],
  keys: [1],
  takers: [['receive', 'finish']],
  jobs: [1, 2],
  lapses: [1],
})
explore('two messages are sent to a run that is taken over', {
  owner: ['receive', 'finish'],
  keys: [1, 2],
  takers: [['receive', 'finish']],
  lapses: [1],
})
explore('a message is sent as the time of its wait is over', {
  owner: ['receive with a timeout'],
  keys: [1],
  takers: [
    ['receive', 'finish'],
    ['receive', 'finish'],
  ],
  jobs: [2, 3],
})
explore('a message is sent twice, by a sender whose first answer was lost', {
  owner: ['receive', 'finish'],
  keys: [1, 1],
})

for (const deed of writes) {
  explore(`the answer to ${deed} is lost: the worker repeats it, and the first one has its effect late`, {
    owner: [deed, 'checkpoint', 'checkpoint', 'finish'],
    beside: deed,
    takers: [['checkpoint', 'finish']],
    lapses: [1],
  })
  explore(`a cancel against ${deed}, and the next owner`, {
    owner: [deed, 'beat', 'finish'],
    takers: [['finish']],
    jobs: [1, 2],
    lapses: [1],
    isCancelled: true,
  })
}
for (const deed of ['sleep', 'receive'] as const) {
  explore(`a worker gives up a ${deed} and goes on, and the statement has its effect late`, {
    owner: ['checkpoint', 'checkpoint', 'finish'],
    beside: deed,
    takers: [['checkpoint', 'finish']],
    jobs: [1, 2],
    lapses: [1],
  })
}
explore('a late `receive` takes no second message', {
  owner: ['receive', 'finish'],
  beside: 'receive',
  keys: [1, 2],
})
explore('a late `once` of a run that was cancelled as it slept', {
  owner: ['sleep'],
  beside: 'once',
  isCancelled: true,
})
explore('a cancel against two claims', { takers: [['finish'], ['finish']], isCancelled: true })
explore('a cancel, a message and a claim of a run that waits', {
  owner: ['receive'],
  takers: [['receive', 'finish']],
  jobs: [2],
  keys: [1],
  isCancelled: true,
})
explore('a run that has failed is restarted, while its finish has its effect late', {
  owner: ['fail'],
  beside: 'fail',
  takers: [['finish']],
  jobs: [1, 2],
  lapses: [1],
  isRestarted: true,
})
explore('a run that was cancelled is restarted', {
  owner: ['sleep'],
  takers: [['finish']],
  jobs: [1, 2, 3],
  lapses: [1],
  isCancelled: true,
  isRestarted: true,
})
explore('the job of a run is deleted and repaired, while it is taken over', {
  owner: ['checkpoint', 'finish'],
  takers: [['finish']],
  jobs: [1, 2],
  lapses: [1],
  deleted: 1,
})
explore('the job of a run that sleeps is deleted and repaired', {
  owner: ['sleep'],
  takers: [['finish']],
  jobs: [2, 3],
  deleted: 2,
})
explore('the job of a time limit is deleted and repaired, while a message is sent', {
  owner: ['receive with a timeout'],
  takers: [['receive', 'finish']],
  jobs: [2, 3],
  keys: [1],
  deleted: 2,
})
