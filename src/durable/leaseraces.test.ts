/** Broken variants of the lease protocol. Each is found; lease.check.ts explores the right one. */
import { describe, expect, test } from 'vitest'
import { type CheckOptions, found } from '../checker/check.ts'
import {
  CANCELLED,
  type Claim,
  ENDED,
  isFetchable,
  isTerminal,
  jobState,
  QUEUED,
  Run,
  RUNNING,
  WAITING,
} from '../../testing/durable/leasedatabase.ts'
import { imageOf, type Protocol, protocol } from '../../testing/durable/leaseprotocol.ts'
import { type Scene, scene } from '../../testing/durable/leaseprograms.ts'

const MORTAL = { crashes: { max: 1, threads: [0] } }

function broken(steps: Partial<Protocol>, given: Scene, options: CheckOptions = {}): string {
  return found(scene(given, { ...protocol, ...steps }), { shrink: 20, ...options })
}

/** A zombie and the next owner do the same. */
const takeover = (...deeds: NonNullable<Scene['owner']>): Scene => ({
  owner: deeds,
  takers: [deeds],
  lapses: [1],
})

describe('the fence', () => {
  test('a checkpoint that does not check the epoch is written after a newer claim', () => {
    const checkpoint: Protocol['checkpoint'] = (sql, claim, seq) => {
      const tx = sql.begin()
      tx.lockRun()
      tx.storeImage(claim.epoch, seq)
      tx.commit()
      return true
    }
    expect(broken({ checkpoint }, takeover('checkpoint', 'finish'))).toMatch(
      /no worker writes after|has ended/,
    )
  })

  test('a fence that checks the epoch and not the state lets a worker write to a run that has ended', () => {
    const fence: Protocol['fence'] = (tx, epoch) => {
      tx.lockRun()
      return tx.get(Run.epoch) === epoch
    }
    const left: Scene = { owner: ['sleep'], beside: 'once', isCancelled: true }
    expect(broken({ fence }, left)).toMatch('no worker writes to a run that has ended')
  })

  test('a fence that does not lock the run lets a claim come between it and the write', () => {
    const fence: Protocol['fence'] = (tx, epoch) =>
      tx.get(Run.epoch) === epoch && tx.get(Run.state) === RUNNING
    expect(broken({ fence }, takeover('checkpoint'))).toMatch('no worker writes after a newer claim')
  })

  test('a finish that checks the epoch in a transaction before the write stores a second outcome', () => {
    const finish: Protocol['finish'] = function (sql, claim, state) {
      const before = sql.begin()
      const isOwn = this.fence(before, claim.epoch)
      before.rollback()
      if (!isOwn) return false
      const tx = sql.begin()
      tx.completeJob(claim)
      tx.endBy(claim.epoch, state)
      tx.commit()
      return true
    }
    expect(broken({ finish }, takeover('finish'))).toMatch(/no worker writes after|has ended/)
  })

  test('a finish that completes the job in a transaction of its own loses the run when the worker dies', () => {
    const finish: Protocol['finish'] = function (sql, claim, state) {
      const first = sql.begin()
      first.completeJob(claim)
      first.commit()
      return protocol.finish.call(this, sql, claim, state)
    }
    expect(broken({ finish }, { owner: ['finish'] }, MORTAL)).toMatch('no live job stands for the run')
  })
})

describe('the claim', () => {
  test('a job that is fetched in one transaction and gets its epoch in another gives a zombie the epoch', () => {
    const claim: Protocol['claim'] = (sql, job) => {
      if (!isFetchable(sql.read(jobState(job)))) return undefined
      const fetching = sql.begin()
      const attempt = fetching.fetch(job)
      fetching.commit()
      if (attempt < 0) return undefined
      const tx = sql.begin()
      tx.lockRun()
      if (tx.get(Run.job) !== job || isTerminal(tx.get(Run.state))) {
        tx.rollback()
        return undefined
      }
      const mine = { job, attempt, epoch: tx.get(Run.epoch) + 1, ...imageOf(tx), isCancelled: false }
      tx.startRun(mine)
      tx.commit()
      return mine
    }
    const two: Scene = { takers: [['finish'], ['finish']], lapses: [1] }
    expect(broken({ claim }, two)).toMatch('the newest epoch has the newest attempt of the job')
  })

  /** The claim with another middle part: after the fetch, and before the commit. */
  const claimBy =
    (
      start: (tx: ReturnType<Parameters<Protocol['claim']>[0]['begin']>, claim: Claim) => Claim,
    ): Protocol['claim'] =>
    (sql, job) => {
      if (!isFetchable(sql.read(jobState(job)))) return undefined
      const early = { ...imageOf({ get: word => sql.read(word) }), isCancelled: false }
      const tx = sql.begin()
      const attempt = tx.fetch(job)
      if (attempt < 0) {
        tx.rollback()
        return undefined
      }
      const claim = start(tx, { job, attempt, epoch: 0, ...early })
      tx.commit()
      return claim
    }

  test('a claim that does not compare the job takes a run by a job that does not stand for it', () => {
    const claim = claimBy((tx, early) => {
      tx.lockRun()
      const mine = { ...early, ...imageOf(tx), epoch: tx.get(Run.epoch) + 1 }
      tx.startRun(mine)
      return mine
    })
    const timeout: Scene = {
      owner: ['receive with a timeout'],
      keys: [1],
      takers: [['finish'], ['finish']],
      jobs: [2, 3],
    }
    expect(broken({ claim }, timeout)).toMatch(/the job that stands for the run|run that has ended/)
  })

  test('a claim that keeps the epoch does not fence the worker before it', () => {
    const claim = claimBy((tx, early) => {
      tx.lockRun()
      const mine = { ...early, ...imageOf(tx), epoch: tx.get(Run.epoch) }
      tx.startRun(mine)
      return mine
    })
    expect(broken({ claim }, takeover('finish'))).toMatch('each claim has a new, greater epoch')
  })

  test('a claim that reads the image before it locks the run begins at an old one', () => {
    const claim = claimBy((tx, early) => {
      tx.lockRun()
      const mine = { ...early, epoch: tx.get(Run.epoch) + 1 }
      tx.startRun(mine)
      return mine
    })
    const late: Scene = { owner: ['checkpoint'], takers: [['checkpoint']], lapses: [1] }
    expect(broken({ claim }, late)).toMatch('a claim begins at the newest image')
  })

  test('a worker that reads its image after its claim, without a fence, begins at one of a later epoch', () => {
    const claim: Protocol['claim'] = function (sql, job) {
      const mine = protocol.claim.call(this, sql, job)
      return mine && { ...mine, ...imageOf({ get: word => sql.read(word) }) }
    }
    const two: Scene = { takers: [['checkpoint'], ['checkpoint']], lapses: [1] }
    expect(broken({ claim }, two)).toMatch('a worker begins at an image of an older epoch')
  })

  test('an engine that ends a job after some lapses leaves a run without a job', () => {
    const lapse: Protocol['lapse'] = (sql, job) => {
      const tx = sql.begin()
      tx.lapseJob(job, 0)
      tx.commit()
    }
    expect(broken({ lapse }, takeover('checkpoint'))).toMatch('no live job stands for the run')
  })

  test('a heartbeat that does not name its attempt extends the lease of the next owner', () => {
    const beat: Protocol['beat'] = (sql, claim) => {
      const tx = sql.begin()
      const isOwn = tx.touchJob(claim, false)
      tx.commit()
      return isOwn
    }
    expect(broken({ beat }, takeover('beat'))).toMatch('a heartbeat extends the lease of its own claim only')
  })
})

describe('a statement whose answer is lost, and which has its effect late', () => {
  test('a checkpoint that does not compare the number of its image replaces a newer one', () => {
    const checkpoint: Protocol['checkpoint'] = function (sql, claim, seq) {
      const tx = sql.begin()
      const isOwn = this.fence(tx, claim.epoch)
      if (isOwn) tx.storeImage(claim.epoch, seq)
      tx.commit()
      return isOwn
    }
    const late: Scene = { owner: ['checkpoint', 'checkpoint'], beside: 'checkpoint' }
    expect(broken({ checkpoint }, late)).toMatch('an image never replaces a newer one')
  })

  test('a sleep that does not compare the number of its image replaces a newer one', () => {
    const sleep: Protocol['sleep'] = function (sql, claim, seq, state) {
      const tx = sql.begin()
      tx.completeJob(claim)
      if (!this.fence(tx, claim.epoch)) {
        tx.rollback()
        return false
      }
      tx.storeImage(claim.epoch, seq)
      tx.leave(claim.epoch, state)
      tx.sendJob()
      tx.commit()
      return true
    }
    const late: Scene = { owner: ['checkpoint', 'checkpoint'], beside: 'sleep' }
    expect(broken({ sleep }, late)).toMatch('an image never replaces a newer one')
  })

  test('a receive that takes a message before it reads the journal loses one', () => {
    const receive: Protocol['receive'] = function (sql, claim) {
      const tx = sql.begin()
      if (!this.fence(tx, claim.epoch)) {
        tx.rollback()
        return -1
      }
      const message = tx.nextMessage()
      if (message !== 0) tx.takeMessage(claim.epoch, message)
      if (tx.get(Run.received) === 0) tx.storeReceived(claim.epoch, message) // on conflict do nothing
      tx.commit()
      return tx.get(Run.received)
    }
    const late: Scene = { owner: ['receive'], beside: 'receive', keys: [1, 2] }
    expect(broken({ receive }, late)).toMatch('no message is taken and lost')
  })

  test('a receive without a journal gives a later attempt another message', () => {
    const receive: Protocol['receive'] = function (sql, claim) {
      const tx = sql.begin()
      if (!this.fence(tx, claim.epoch)) {
        tx.rollback()
        return -1
      }
      const message = tx.nextMessage()
      if (message !== 0) tx.takeMessage(claim.epoch, message)
      tx.commit()
      return message
    }
    const two: Scene = { ...takeover('receive'), keys: [1, 2] }
    expect(broken({ receive }, two)).toMatch(/a `receive` has one message|no message is taken and lost/)
  })

  test('a send without a key delivers its message twice', () => {
    const send: Protocol['send'] = (sql, key) => {
      const tx = sql.begin()
      tx.addMessage(key)
      tx.commit()
    }
    expect(broken({ send }, { owner: ['receive'], keys: [1, 1] })).toMatch('a message is delivered once')
  })
})

describe('once', () => {
  const once = (
    store: (this: Protocol, ...given: Parameters<Protocol['once']>) => number,
  ): Protocol['once'] =>
    function (sql, claim, result) {
      const before = sql.begin()
      const mayRun = this.fence(before, claim.epoch)
      const known = before.get(Run.once)
      before.rollback()
      return !mayRun ? 0 : known !== 0 ? known : store.call(this, sql, claim, result)
    }

  test('a result that is stored without the epoch is written after a newer claim', () => {
    const unfenced = once((sql, claim, result) => {
      const tx = sql.begin()
      tx.lockRun()
      if (tx.get(Run.once) === 0) tx.storeOnce(claim.epoch, result)
      tx.commit()
      return tx.get(Run.once)
    })
    expect(broken({ once: unfenced }, takeover('once', 'finish'))).toMatch(/no worker writes after|has ended/)
  })

  test('a result that replaces a stored one gives two tasks of a run two results', () => {
    const replacing = once(function (sql, claim, result) {
      const tx = sql.begin()
      const isOwn = this.fence(tx, claim.epoch)
      if (isOwn) tx.storeOnce(claim.epoch, result)
      tx.commit()
      return isOwn ? result : 0
    })
    const two: Scene = { owner: ['once'], beside: 'once, in another task' }
    expect(broken({ once: replacing }, two)).toMatch('a `once` key has one result')
  })

  test('a caller that gets its own result instead of the stored one has another result', () => {
    const own = once(function (sql, claim, result) {
      const tx = sql.begin()
      const isOwn = this.fence(tx, claim.epoch)
      if (isOwn && tx.get(Run.once) === 0) tx.storeOnce(claim.epoch, result)
      tx.commit()
      return isOwn ? result : 0
    })
    const two: Scene = { owner: ['once'], beside: 'once, in another task' }
    expect(broken({ once: own }, two)).toMatch('a `once` key has one result')
  })
})

describe('wait and send', () => {
  /** A wait with another condition for a job. `read` runs before the run is locked, `isQueued` after. */
  const waitWith = <T>(
    read: (tx: { nextMessage(): number }) => T,
    isQueued: (seen: T, tx: { get(word: number): number; nextMessage(): number }) => boolean,
  ): Protocol['wait'] =>
    function (sql, claim, seq, hasTimeout) {
      const tx = sql.begin()
      const seen = read(tx)
      tx.completeJob(claim)
      if (!this.fence(tx, claim.epoch)) {
        tx.rollback()
        return false
      }
      const hasMessage = isQueued(seen, tx)
      tx.storeImage(claim.epoch, seq)
      tx.leave(claim.epoch, hasMessage ? QUEUED : WAITING)
      if (hasMessage || hasTimeout) tx.sendJob()
      tx.commit()
      return true
    }

  test('a wait that looks for messages before it has locked the run sleeps on beside one', () => {
    const wait = waitWith(
      tx => tx.nextMessage() !== 0,
      hadMessage => hadMessage,
    )
    expect(broken({ wait }, { owner: ['receive'], keys: [1] })).toMatch('its message is there')
  })

  test('a send that reads the state of the run without a lock leaves the run asleep', () => {
    const send: Protocol['send'] = (sql, key) => {
      const isWaiting = sql.read(Run.state) === WAITING
      const tx = sql.begin()
      tx.addMessage(key)
      if (isWaiting) {
        tx.queue()
        tx.sendJob()
      }
      tx.commit()
    }
    expect(broken({ send }, { owner: ['receive'], keys: [1] })).toMatch('its message is there')
  })

  test('a wait that does not look for a cancel waits for ever', () => {
    const wait = waitWith(
      () => undefined,
      (_, tx) => tx.nextMessage() !== 0,
    )
    const cancelled: Scene = { owner: ['receive'], isCancelled: true }
    expect(broken({ wait }, cancelled)).toMatch('a run that is to be cancelled does not wait')
  })
})

describe('cancel', () => {
  test('a claim that does not hand on a cancel lets a later attempt complete the run', () => {
    const claim: Protocol['claim'] = function (sql, job) {
      const mine = protocol.claim.call(this, sql, job)
      return mine && { ...mine, isCancelled: false }
    }
    const lapsed: Scene = { ...takeover('finish'), isCancelled: true }
    expect(broken({ claim }, lapsed)).toMatch('no later attempt completes a run that is to be cancelled')
  })

  test('a cancel that locks the run, and then its job, deadlocks with a claim', () => {
    const cancel: Protocol['cancel'] = sql => {
      const tx = sql.begin()
      tx.lockRun()
      const isIdle = tx.get(Run.state) === QUEUED
      if (isIdle) {
        tx.cancelJob(tx.get(Run.job))
        tx.end(CANCELLED, 0)
      }
      tx.commit()
      return isIdle ? 'cancelled' : 'ended'
    }
    expect(broken({ cancel }, { takers: [['finish']], isCancelled: true })).toMatch(/deadlock|livelock/)
  })

  test('a cancel that takes the job first ends the job of a run that has been claimed meanwhile', () => {
    const cancel: Protocol['cancel'] = sql => {
      const job = sql.read(Run.job)
      const tx = sql.begin()
      tx.cancelJob(job)
      tx.lockRun()
      const state = tx.get(Run.state)
      if (state === RUNNING) tx.askToCancel()
      else if (!isTerminal(state)) tx.end(CANCELLED, 0)
      tx.commit()
      return state === RUNNING ? 'asked' : 'cancelled'
    }
    const beaten: Scene = { takers: [['checkpoint']], isCancelled: true }
    expect(broken({ cancel }, beaten)).toMatch('no live job stands for the run')
  })

  test('a cancel that decides by a state that it has read without a lock cancels a run that has ended', () => {
    const cancel: Protocol['cancel'] = sql => {
      const isIdle = sql.read(Run.state) === QUEUED
      const tx = sql.begin()
      if (isIdle) tx.end(CANCELLED, 0)
      tx.commit()
      return isIdle ? 'cancelled' : 'ended'
    }
    expect(broken({ cancel }, { takers: [['finish']], isCancelled: true })).toMatch(
      'the outcome is stored once',
    )
  })
})

describe('repair', () => {
  test('a repair that looks at the run before it locks it sends a job for a run that has ended', () => {
    const repair: Protocol['repair'] = sql => {
      const isRunning = sql.read(Run.state) === RUNNING
      const isGone = sql.read(jobState(sql.read(Run.job))) === ENDED
      const tx = sql.begin()
      if (isRunning && isGone) tx.sendJob()
      tx.commit()
    }
    expect(broken({ repair }, { owner: ['finish'], deleted: 1 })).toMatch(
      'no job is sent for a run that has ended',
    )
  })

  test('a repair that leaves out runs that wait loses one whose time limit has no job', () => {
    const repair: Protocol['repair'] = sql => {
      if (sql.read(Run.state) !== WAITING) protocol.repair(sql)
    }
    const waits: Scene = { owner: ['receive with a timeout'], deleted: 2 }
    expect(broken({ repair }, waits)).toMatch('no live job stands for the run')
  })
})
