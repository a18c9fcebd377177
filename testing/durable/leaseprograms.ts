/** The programs that src/durable/lease.check.ts explores, and leaseraces.test.ts with a broken protocol. */
import { assert } from '../../src/arena/assert.ts'
import type { Setup } from '../../src/checker/check.ts'
import {
  ASLEEP,
  CANCELLED,
  type Claim,
  COMPLETED,
  type Connection,
  Database,
  FAILED,
  isFetchable,
  isTerminal,
  JOBS,
  jobState,
  QUEUED,
  Run,
  WAITING,
} from './leasedatabase.ts'
import { type Protocol, protocol } from './leaseprotocol.ts'

/** A worker that has claimed the run, on one of its connections. */
class Worker {
  readonly steps: Protocol
  readonly sql: Connection
  readonly claim: Claim
  /** The number of its last image. */
  seq: number
  /** What `once` and the first `receive` gave to the task, 0 for nothing. */
  result = 0
  message = 0

  constructor(steps: Protocol, sql: Connection, claim: Claim) {
    this.steps = steps
    this.sql = sql
    this.claim = claim
    this.seq = claim.seq
  }

  /** Whether the worker still has the run. */
  do(deed: Deed): boolean {
    const { steps, sql, claim } = this
    switch (deed) {
      case 'beat':
        if (!steps.beat(sql, claim)) return false
        if (sql.read(Run.cancelAsked) === 0) return true
        // It kills its task.
        steps.finish(sql, claim, CANCELLED)
        return false
      case 'checkpoint':
        return steps.checkpoint(sql, claim, ++this.seq)
      case 'once':
      case 'once, in another task':
        this.result = steps.once(sql, claim, deed === 'once' ? claim.epoch : 10 + claim.epoch)
        return this.result !== 0
      case 'receive':
      case 'receive with a timeout':
        this.message = Math.max(0, steps.receive(sql, claim))
        if (this.message !== 0) return true
        steps.wait(sql, claim, ++this.seq, deed !== 'receive')
        return false
      case 'sleep':
      case 'release':
        steps.sleep(sql, claim, ++this.seq, deed === 'sleep' ? ASLEEP : QUEUED)
        return false
      case 'finish':
      case 'fail':
        steps.finish(sql, claim, deed === 'finish' ? COMPLETED : FAILED)
        return false
    }
  }
}

/** What a worker does with its run. */
export type Deed =
  | 'beat'
  | 'checkpoint'
  | 'once'
  | 'once, in another task'
  | 'receive'
  | 'receive with a timeout'
  | 'sleep'
  | 'release'
  | 'finish'
  | 'fail'

export interface Scene {
  /** What the worker with epoch 1 does. Without it, the run is queued. */
  readonly owner?: readonly Deed[]
  /** The same worker, on another connection: or one that it gave up, whose statement has its effect late. */
  readonly beside?: Deed
  /** Other workers. Each tries once to claim the run, by each of `jobs` in turn, and then does these. */
  readonly takers?: readonly (readonly Deed[])[]
  readonly jobs?: readonly number[]
  /** The jobs whose leases lapse, at any time, in this order. */
  readonly lapses?: readonly number[]
  /** Each sender sends a message with its key. */
  readonly keys?: readonly number[]
  readonly isCancelled?: boolean
  readonly isRestarted?: boolean
  /** An operator deletes this job from the rows of the engine, and a repair follows, both at any time. */
  readonly deleted?: number
}

function work(worker: Worker, deeds: readonly Deed[]): Worker {
  const { steps, sql, claim } = worker
  assert(claim.imageEpoch < claim.epoch, 'a worker begins at an image of an older epoch')
  if (claim.isCancelled) steps.finish(sql, claim, CANCELLED)
  else for (const deed of deeds) if (!worker.do(deed)) break
  return worker
}

/** All threads have ended: the run continues to its end, unless it waits. */
function settle(steps: Protocol, sql: Connection): void {
  for (let turn = 0; turn < 4 && !isTerminal(sql.read(Run.state)); turn++) {
    const job = sql.read(Run.job)
    if (sql.read(Run.state) === WAITING && job === 0) {
      assert(sql.read(Run.cancelAsked) === 0, 'a run that is to be cancelled does not wait')
      return
    }
    assert(job !== 0, 'no job stands for the run')
    steps.lapse(sql, job)
    const claim = steps.claim(sql, job)
    assert(claim !== undefined || isTerminal(sql.read(Run.state)), 'no live job stands for the run')
    if (claim !== undefined) work(new Worker(steps, sql, claim), ['finish'])
  }
  assert(isTerminal(sql.read(Run.state)), 'the run has its outcome in the end')
}

/** How many values there are, without 0. */
const distinct = (values: readonly number[]): number => new Set(values.filter(value => value !== 0)).size

export function scene(given: Scene, steps: Protocol = protocol): Setup {
  const { owner, beside, takers = [], jobs = [1], lapses = [], keys = [] } = given
  const { isCancelled = false, isRestarted = false, deleted = 0 } = given
  return () => {
    const db = new Database(owner !== undefined)
    const threads: Record<string, () => unknown> = {}
    const add = (name: string, body: (sql: Connection) => unknown): void => {
      const sql = db.connect(Object.keys(threads).length)
      threads[name] = () => body(sql)
    }
    if (owner !== undefined) add('owner', sql => work(new Worker(steps, sql, db.firstClaim), owner))
    if (beside !== undefined) add('beside', sql => work(new Worker(steps, sql, db.firstClaim), [beside]))
    for (const [index, deeds] of takers.entries()) {
      add(`taker ${index + 1}`, sql => {
        for (const job of jobs) {
          const claim = steps.claim(sql, job)
          if (claim !== undefined) return work(new Worker(steps, sql, claim), deeds)
        }
        return undefined
      })
    }
    if (lapses.length > 0) {
      add('supervisor', sql => {
        for (const job of lapses) steps.lapse(sql, job)
      })
    }
    for (const [index, key] of keys.entries()) add(`sender ${index + 1}`, sql => steps.send(sql, key))
    if (isCancelled) add('canceller', sql => steps.cancel(sql))
    if (isRestarted) add('restarter', sql => steps.restart(sql))
    if (deleted !== 0) {
      add('operator', sql => {
        const tx = sql.begin()
        tx.cancelJob(deleted)
        tx.commit()
      })
      add('repairer', sql => steps.repair(sql))
    }
    return {
      threads,
      recover: dead => db.disconnect(dead),
      final({ results }) {
        const sql = db.connect(Object.keys(threads).length)
        const workers = results.filter(result => result instanceof Worker)
        assert(distinct(workers.map(({ result }) => result)) <= 1, 'a `once` key has one result')
        assert(distinct(workers.map(({ message }) => message)) <= 1, 'a `receive` has one message')
        const taken = sql.begin().countTaken()
        assert(taken === (sql.read(Run.received) === 0 ? 0 : 1), 'no message is taken and lost')
        for (let job = 1; job <= JOBS; job++) {
          if (job === sql.read(Run.job)) continue
          steps.lapse(sql, job)
          assert(steps.claim(sql, job) === undefined, 'at most one live job stands for a run')
          assert(!isFetchable(sql.read(jobState(job))), 'a stale job ends')
        }
        if (deleted !== 0) steps.repair(sql)
        settle(steps, sql)
        if (isRestarted) return
        const isFinal = results.includes('cancelled')
        assert(!isFinal || sql.read(Run.state) === CANCELLED, 'a cancelled run has no other outcome')
        const asked = sql.read(Run.cancelAsked)
        assert(
          asked === 0 || sql.read(Run.state) === CANCELLED || sql.read(Run.outcome) === asked,
          'no later attempt completes a run that is to be cancelled',
        )
      },
    }
  }
}
