/**
 * The transactions of the lease and fencing protocol, for the model in src/durable/lease.check.ts. Its header
 * has the races; the letters here are those of its columns. A broken variant replaces one of the steps
 * (src/durable/leaseraces.test.ts).
 */
import {
  CANCELLED,
  type Claim,
  type Connection,
  ENDED,
  FAILED,
  isFetchable,
  isTerminal,
  jobState,
  QUEUED,
  Run,
  RUNNING,
  type Transaction,
  WAITING,
} from './leasedatabase.ts'

/** The image that a claim begins at. */
export const imageOf = (sql: Pick<Transaction, 'get'>): Pick<Claim, 'seq' | 'imageEpoch'> => ({
  seq: sql.get(Run.imageSeq),
  imageEpoch: sql.get(Run.imageEpoch),
})

/** The attempts that the engine gives to a job. No number of lapses ends one: the run counts its failures. */
const ATTEMPTS_MAX = 1 << 30

export interface Protocol {
  /** Locks the run; whether a worker with this epoch may write. */
  fence(tx: Transaction, epoch: number): boolean
  /** Fetches a job and claims the run. Undefined: another worker has the job, or it was stale. */
  claim(this: Protocol, sql: Connection, job: number): Claim | undefined
  /** These return false to a worker that is fenced. */
  beat(this: Protocol, sql: Connection, claim: Claim): boolean
  checkpoint(this: Protocol, sql: Connection, claim: Claim, seq: number): boolean
  sleep(this: Protocol, sql: Connection, claim: Claim, seq: number, state: number): boolean
  wait(this: Protocol, sql: Connection, claim: Claim, seq: number, hasTimeout: boolean): boolean
  finish(this: Protocol, sql: Connection, claim: Claim, state: number): boolean
  /** The result that is stored for the key, or 0 for a worker that is fenced. `result`: of the function. */
  once(this: Protocol, sql: Connection, claim: Claim, result: number): number
  /** The message, 0 if there is none, -1 for a worker that is fenced. */
  receive(this: Protocol, sql: Connection, claim: Claim): number
  send(sql: Connection, key: number): void
  /** The run is cancelled, or its worker is asked to end it, or it has ended. */
  cancel(sql: Connection): 'cancelled' | 'asked' | 'ended'
  restart(sql: Connection): void
  lapse(sql: Connection, job: number): void
  /** Sends a job for a run whose job is gone: the rows of the engine are also its operator's. */
  repair(sql: Connection): void
}

export const protocol: Protocol = {
  fence(tx, epoch) {
    tx.lockRun() // (C)
    return tx.get(Run.epoch) === epoch && tx.get(Run.state) === RUNNING // (D)
  },

  claim(sql, job) {
    if (!isFetchable(sql.read(jobState(job)))) return undefined
    const tx = sql.begin()
    const attempt = tx.fetch(job) // (A)
    if (attempt < 0) {
      tx.rollback()
      return undefined
    }
    tx.lockRun()
    // (K)
    if (tx.get(Run.job) !== job || isTerminal(tx.get(Run.state))) {
      tx.completeJob({ job, attempt })
      tx.commit()
      return undefined
    }
    const epoch = tx.get(Run.epoch) + 1
    const isCancelled = tx.get(Run.cancelAsked) !== 0 // (J)
    const claim = { job, attempt, epoch, ...imageOf(tx), isCancelled }
    tx.startRun(claim) // (B)
    tx.commit()
    return claim
  },

  beat(sql, claim) {
    const tx = sql.begin()
    const isOwn = tx.touchJob(claim)
    tx.commit()
    return isOwn
  },

  checkpoint(sql, claim, seq) {
    const tx = sql.begin()
    if (!this.fence(tx, claim.epoch)) {
      tx.rollback()
      return false
    }
    if (tx.get(Run.imageSeq) < seq) tx.storeImage(claim.epoch, seq) // (E)
    tx.commit()
    return true
  },

  sleep(sql, claim, seq, state) {
    const tx = sql.begin()
    tx.completeJob(claim)
    if (!this.fence(tx, claim.epoch) || tx.get(Run.imageSeq) >= seq) {
      tx.rollback()
      return false
    }
    tx.storeImage(claim.epoch, seq)
    tx.leave(claim.epoch, state)
    tx.sendJob()
    tx.commit()
    return true
  },

  wait(sql, claim, seq, hasTimeout) {
    const tx = sql.begin()
    tx.completeJob(claim)
    if (!this.fence(tx, claim.epoch) || tx.get(Run.imageSeq) >= seq) {
      tx.rollback()
      return false
    }
    const hasMessage = tx.nextMessage() !== 0 // (G)
    const isCancelled = tx.get(Run.cancelAsked) !== 0 // (I)
    tx.storeImage(claim.epoch, seq)
    tx.leave(claim.epoch, hasMessage ? QUEUED : WAITING)
    if (hasMessage || hasTimeout || isCancelled) tx.sendJob()
    tx.commit()
    return true
  },

  finish(sql, claim, state) {
    const tx = sql.begin()
    tx.completeJob(claim)
    if (!this.fence(tx, claim.epoch)) {
      tx.rollback()
      return false
    }
    tx.endBy(claim.epoch, state)
    tx.commit()
    return true
  },

  once(sql, claim, result) {
    const before = sql.begin()
    const mayRun = this.fence(before, claim.epoch)
    const known = before.get(Run.once)
    before.rollback()
    if (!mayRun) return 0
    if (known !== 0) return known
    // The function runs here. It may run again, in another worker.
    const tx = sql.begin()
    if (!this.fence(tx, claim.epoch)) {
      tx.rollback()
      return 0
    }
    if (tx.get(Run.once) === 0) tx.storeOnce(claim.epoch, result) // (L)
    const stored = tx.get(Run.once)
    tx.commit()
    return stored
  },

  receive(sql, claim) {
    const tx = sql.begin()
    if (!this.fence(tx, claim.epoch)) {
      tx.rollback()
      return -1
    }
    let message = tx.get(Run.received) // (F)
    if (message === 0) {
      message = tx.nextMessage()
      if (message !== 0) {
        tx.takeMessage(claim.epoch, message)
        tx.storeReceived(claim.epoch, message)
      }
    }
    tx.commit()
    return message
  },

  send(sql, key) {
    const tx = sql.begin()
    tx.lockRun()
    if (!tx.hasMessage(key)) {
      tx.addMessage(key)
      if (tx.get(Run.state) === WAITING) {
        tx.queue()
        tx.sendJob()
      }
    }
    tx.commit()
  },

  cancel(sql) {
    const tx = sql.begin()
    tx.lockRun() // (H)
    const state = tx.get(Run.state)
    const job = tx.get(Run.job)
    const isRunning = state === RUNNING
    const isIdle = !isRunning && !isTerminal(state)
    if (isRunning) tx.askToCancel()
    else if (isIdle) tx.end(CANCELLED, tx.get(Run.epoch))
    tx.commit()
    if (isIdle && job !== 0) {
      // The job is stale already.
      const tidying = sql.begin()
      tidying.cancelJob(job)
      tidying.commit()
    }
    return isRunning ? 'asked' : isIdle ? 'cancelled' : 'ended'
  },

  restart(sql) {
    const tx = sql.begin()
    tx.lockRun()
    const state = tx.get(Run.state)
    if (state === FAILED || state === CANCELLED) {
      tx.restart()
      tx.sendJob()
    }
    tx.commit()
  },

  lapse(sql, job) {
    const tx = sql.begin()
    tx.lapseJob(job, ATTEMPTS_MAX)
    tx.commit()
  },

  repair(sql) {
    const tx = sql.begin()
    tx.lockRun() // (M)
    const job = tx.get(Run.job)
    if (!isTerminal(tx.get(Run.state)) && job !== 0 && tx.get(jobState(job)) === ENDED) tx.sendJob()
    tx.commit()
  },
}
