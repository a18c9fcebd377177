/**
 * The database of the lease model (src/durable/lease.check.ts): one run, the jobs that stood for it, its
 * newest image, one `once` key, its first `receive`, and its messages. The run has a lock with all that
 * belongs to it, and each job has one.
 *
 * A transaction takes the lock of each row that it writes or selects for update, and keeps it until its end.
 * Others see its writes when it has committed. `read` is a select without a lock: it finds what is committed.
 * So transactions that lock the same row follow each other, and nothing else is promised, as with READ
 * COMMITTED. A fetch of the engine skips a locked job; here it waits, and that is a worker that comes later.
 *
 * The writes of a run are methods of `Transaction`. They assert what must hold of them, whichever protocol
 * calls them.
 */
import { assert } from '../../src/arena/assert.ts'

/** The states of a run, numbered as in lease.check.ts. */
export const QUEUED = 1
export const RUNNING = 2
export const ASLEEP = 3
export const WAITING = 4
export const COMPLETED = 5
export const FAILED = 6
export const CANCELLED = 7

/** The states of a job; 0 is one that was not sent. */
export const CREATED = 1
export const RETRY = 2
export const ACTIVE = 3
export const ENDED = 4

/** The words of the run. */
export const Run = {
  state: 0,
  epoch: 1,
  /** The job that stands for it, 0 for none. */
  job: 2,
  /** The epoch that ran when the run was to be cancelled, 0 if it is not to be. */
  cancelAsked: 3,
  outcome: 4,
  /** The number of the newest image, and the epoch of its writer. */
  imageSeq: 5,
  imageEpoch: 6,
  /** The stored result of the `once` key, 0 for none. */
  once: 7,
  /** The message that the first `receive` has taken, 0 for none. */
  received: 8,
  /** How many jobs were sent: the number of the last one. */
  jobs: 9,
  lock: 10,
  words: 11,
} as const

/** Jobs and messages are numbered from 1. */
export const JOBS = 5
const MESSAGES = 2

const jobWords = (job: number): number => Run.words + 3 * (job - 1)
export const jobState = (job: number): number => jobWords(job)
const jobAttempt = (job: number): number => jobWords(job) + 1
const jobLock = (job: number): number => jobWords(job) + 2

/** The key that the sender gave to a message, and whether a `receive` has taken it. */
const messageKey = (message: number): number => jobWords(JOBS + 1) + 2 * (message - 1)
const messageTaken = (message: number): number => messageKey(message) + 1
const WORDS: number = messageKey(MESSAGES + 1)

export const isFetchable = (state: number): boolean => state === CREATED || state === RETRY
export const isTerminal = (state: number): boolean => state >= COMPLETED

/** What a worker knows of a run that it has claimed. */
export interface Claim {
  readonly job: number
  readonly attempt: number
  readonly epoch: number
  /** The image that it begins at, and the epoch of its writer. */
  readonly seq: number
  readonly imageEpoch: number
  /** The run is to be cancelled. */
  readonly isCancelled: boolean
}

export class Database {
  readonly words: Int32Array = new Int32Array(new SharedArrayBuffer(4 * WORDS))
  private readonly connections: Connection[] = []

  /** A run that waits in the queue, or runs at the worker of `firstClaim`. */
  constructor(isClaimed: boolean) {
    const { words } = this
    words[Run.state] = isClaimed ? RUNNING : QUEUED
    words[Run.epoch] = isClaimed ? 1 : 0
    words[Run.job] = 1
    words[Run.jobs] = 1
    words[jobState(1)] = isClaimed ? ACTIVE : CREATED
  }

  readonly firstClaim: Claim = {
    job: 1,
    attempt: 0,
    epoch: 1,
    seq: 0,
    imageEpoch: 0,
    isCancelled: false,
  }

  /** The connection of thread `thread`. */
  connect(thread: number): Connection {
    return (this.connections[thread] ??= new Connection(this, thread))
  }

  /** The database notices that a client is gone. */
  disconnect(thread: number): void {
    this.connections[thread]?.transaction?.abandon()
  }
}

export class Connection {
  readonly words: Int32Array
  /** The value of a lock that this connection holds. */
  readonly tag: number
  transaction: Transaction | undefined

  constructor({ words }: Database, thread: number) {
    this.words = words
    this.tag = thread + 1
  }

  /** A select of one word without a lock. */
  read(word: number): number {
    return Atomics.load(this.words, word)
  }

  begin(): Transaction {
    return (this.transaction = new Transaction(this))
  }
}

export class Transaction {
  private readonly connection: Connection
  private readonly words: Int32Array
  private readonly locks: number[] = []
  private readonly written: number[] = []
  private readonly values: number[] = []
  private isCommitted = false

  constructor(connection: Connection) {
    this.connection = connection
    this.words = connection.words
  }

  private lock(word: number): void {
    if (this.locks.includes(word)) return
    this.locks.push(word)
    while (Atomics.compareExchange(this.words, word, 0, this.connection.tag) !== 0);
  }

  lockRun(): void {
    this.lock(Run.lock)
  }

  lockJob(job: number): void {
    this.lock(jobLock(job))
  }

  /** What this transaction sees: its own writes, then what is committed. */
  get(word: number): number {
    const at = this.written.lastIndexOf(word)
    return at >= 0 ? this.values[at] : Atomics.load(this.words, word)
  }

  private set(word: number, value: number): void {
    this.written.push(word)
    this.values.push(value)
  }

  commit(): void {
    if (this.locks.includes(Run.lock)) this.checkRun()
    this.isCommitted = true
    this.apply()
  }

  rollback(): void {
    this.unlock()
  }

  /** The client has died: the database ends the transaction, in the middle of a commit too. */
  abandon(): void {
    if (this.isCommitted) this.apply()
    else this.unlock()
  }

  private apply(): void {
    for (let i = 0; i < this.written.length; i++) Atomics.store(this.words, this.written[i], this.values[i])
    this.isCommitted = false
    this.unlock()
  }

  /** Unlocks the rows that are still locked. */
  private unlock(): void {
    for (; this.locks.length > 0; this.locks.pop()) {
      Atomics.compareExchange(this.words, this.locks.at(-1)!, this.connection.tag, 0)
    }
  }

  /** What must hold of a run whenever its row is not locked. */
  private checkRun(): void {
    if (this.get(Run.state) !== WAITING || this.get(Run.job) !== 0) return
    assert(this.nextMessage() === 0, 'a run waits without a job, and its message is there')
  }

  // Jobs: the statements of the engine. Each locks the row.

  /** Makes the job active: its attempt, or -1 if it is not to be had. */
  fetch(job: number): number {
    this.lockJob(job)
    const state = this.get(jobState(job))
    if (!isFetchable(state)) return -1
    const attempt = this.get(jobAttempt(job)) + (state === RETRY ? 1 : 0)
    this.set(jobState(job), ACTIVE)
    this.set(jobAttempt(job), attempt)
    return attempt
  }

  private hasJob({ job, attempt }: Pick<Claim, 'job' | 'attempt'>): boolean {
    return this.get(jobState(job)) === ACTIVE && this.get(jobAttempt(job)) === attempt
  }

  /** Ends the job, if it is the claim's still: an engine ignores calls for an older attempt. */
  completeJob(claim: Pick<Claim, 'job' | 'attempt'>): void {
    this.lockJob(claim.job)
    if (this.hasJob(claim)) this.set(jobState(claim.job), ENDED)
  }

  /** Ends the job, also one that is active. */
  cancelJob(job: number): void {
    this.lockJob(job)
    this.set(jobState(job), ENDED)
  }

  /** A heartbeat. False: the lease is over. `isFenced`: it names its attempt. */
  touchJob(claim: Pick<Claim, 'job' | 'attempt'>, isFenced = true): boolean {
    this.lockJob(claim.job)
    const isOwn = this.hasJob(claim)
    if (isFenced && !isOwn) return false
    const isTouched = this.get(jobState(claim.job)) === ACTIVE
    assert(!isTouched || isOwn, 'a heartbeat extends the lease of its own claim only')
    return isTouched
  }

  /** The lease of a job is over. After `attemptsMax` the engine ends it instead. */
  lapseJob(job: number, attemptsMax: number): void {
    this.lockJob(job)
    if (this.get(jobState(job)) !== ACTIVE) return
    this.set(jobState(job), this.get(jobAttempt(job)) < attemptsMax ? RETRY : ENDED)
  }

  /** A new job stands for the run. It may start later: in the model, whenever. */
  sendJob(): void {
    this.lockRun()
    assert(!isTerminal(this.get(Run.state)), 'no job is sent for a run that has ended')
    const job = this.get(Run.jobs) + 1
    assert(job <= JOBS, 'the model has enough jobs')
    this.set(Run.jobs, job)
    this.set(Run.job, job)
    this.set(jobState(job), CREATED)
  }

  // The run: each write locks the row, whether or not the protocol has checked it before.

  private write(epoch: number): void {
    this.lockRun()
    assert(epoch === this.get(Run.epoch), 'no worker writes after a newer claim')
    assert(!isTerminal(this.get(Run.state)), 'no worker writes to a run that has ended')
  }

  startRun(claim: Claim): void {
    this.lockRun()
    assert(!isTerminal(this.get(Run.state)), 'a run that has ended is not claimed')
    assert(claim.epoch > this.get(Run.epoch), 'each claim has a new, greater epoch')
    assert(this.get(Run.job) === claim.job, 'a claim is of the job that stands for the run')
    assert(this.hasJob(claim), 'the newest epoch has the newest attempt of the job')
    assert(claim.seq === this.get(Run.imageSeq), 'a claim begins at the newest image')
    assert(this.get(Run.imageEpoch) < claim.epoch, 'a claim begins at an image of an older epoch')
    this.set(Run.epoch, claim.epoch)
    this.set(Run.state, RUNNING)
  }

  storeImage(epoch: number, seq: number): void {
    this.write(epoch)
    assert(seq > this.get(Run.imageSeq), 'an image never replaces a newer one')
    this.set(Run.imageSeq, seq)
    this.set(Run.imageEpoch, epoch)
  }

  /** The worker leaves the run, which is queued, asleep or waiting now, without a job. */
  leave(epoch: number, state: number): void {
    this.write(epoch)
    this.set(Run.state, state)
    this.set(Run.job, 0)
  }

  queue(): void {
    this.lockRun()
    this.set(Run.state, QUEUED)
  }

  askToCancel(): void {
    this.lockRun()
    this.set(Run.cancelAsked, this.get(Run.epoch))
  }

  /** Stores the outcome: the epoch of the worker that ended the run. */
  end(state: number, outcome: number): void {
    this.lockRun()
    assert(!isTerminal(this.get(Run.state)) && this.get(Run.outcome) === 0, 'the outcome is stored once')
    this.set(Run.state, state)
    this.set(Run.outcome, outcome)
  }

  /** The same, by a worker. */
  endBy(epoch: number, state: number): void {
    this.write(epoch)
    this.end(state, epoch)
  }

  /** A person runs a run that has failed once more: its outcome is dropped. */
  restart(): void {
    this.lockRun()
    assert(isTerminal(this.get(Run.state)), 'only a run that has ended is restarted')
    this.set(Run.outcome, 0)
    this.set(Run.cancelAsked, 0)
    this.set(Run.state, QUEUED)
  }

  storeOnce(epoch: number, result: number): void {
    this.write(epoch)
    this.set(Run.once, result)
  }

  // Messages are sent and taken under the lock of the run.

  addMessage(key: number): void {
    this.lockRun()
    let message = 1
    while (message <= MESSAGES && this.get(messageKey(message)) !== 0) message++
    assert(message <= MESSAGES, 'the model has enough messages')
    assert(!this.hasMessage(key), 'a message is delivered once')
    this.set(messageKey(message), key)
  }

  hasMessage(key: number): boolean {
    for (let message = 1; message <= MESSAGES; message++) {
      if (this.get(messageKey(message)) === key) return true
    }
    return false
  }

  /** The oldest message that no `receive` has taken, or 0. */
  nextMessage(): number {
    for (let message = 1; message <= MESSAGES; message++) {
      if (this.get(messageKey(message)) !== 0 && this.get(messageTaken(message)) === 0) return message
    }
    return 0
  }

  takeMessage(epoch: number, message: number): void {
    this.write(epoch)
    this.set(messageTaken(message), 1)
  }

  /** The journal says that the first `receive` has this message. */
  storeReceived(epoch: number, message: number): void {
    this.write(epoch)
    this.set(Run.received, message)
  }

  countTaken(): number {
    let count = 0
    for (let message = 1; message <= MESSAGES; message++) count += this.get(messageTaken(message))
    return count
  }
}
