import { type Database, isTransient } from '../database/database.ts'
import type { Engine } from '../engine.ts'
import { Calls } from './calls.ts'
import { Claims } from './claims.ts'
import { Journal } from './journal.ts'
import { Reads } from './reads.ts'
import { Upkeep } from './upkeep.ts'
import { Writes } from './writes.ts'

/** The statements and transactions of runs, by their callers. */
export class Store {
  readonly database: Database
  readonly engine: Engine
  /** Of a worker that looks for runs. */
  readonly claims: Claims
  /** Of a worker that has a run. */
  readonly writes: Writes
  readonly journal: Journal
  /** Of any program. */
  readonly calls: Calls
  readonly reads: Reads
  readonly upkeep: Upkeep

  constructor(database: Database, engine: Engine) {
    this.database = database
    this.engine = engine
    this.claims = new Claims(database, engine)
    this.writes = new Writes(database, engine)
    this.journal = new Journal(database)
    this.calls = new Calls(database, engine)
    this.reads = new Reads(database)
    this.upkeep = new Upkeep(database, engine)
  }

  /** Runs a statement or transaction that may be repeated, until the database answers. */
  async patiently<T>(work: () => Promise<T>, isOver: () => boolean): Promise<T> {
    for (let wait = 50; ; wait = Math.min(2000, wait * 2)) {
      try {
        return await work()
      } catch (error) {
        if (!isTransient(error) || isOver()) throw error
        await new Promise(resolve => setTimeout(resolve, wait))
      }
    }
  }
}
