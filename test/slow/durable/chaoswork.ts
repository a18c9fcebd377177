/** The runs of the chaos of heddle/durable, and their effects outside of the database of the runs. */
import pg from 'pg'
import { isTransient } from '../../../src/durable/database/database.ts'
import { once, receive, sleep } from '../../../src/durable/index.ts'
import type { Plan, Result } from './history.ts'

export const EFFECTS = `
  create table effect (
    id bigint generated always as identity primary key,
    run text not null,
    key text not null,
    value text not null,
    saw text[] not null
  )`

export function follow(plan: Plan, url: string): Result {
  'use task movable'
  let sum = plan.start
  const saw: string[] = []
  const got: unknown[] = []
  for (const step of plan.steps) {
    if (step.kind === 'compute') sum = compute(sum, step.turns)
    else if (step.kind === 'sleep') sleep(step.ms)
    else if (step.kind === 'receive') got.push(receive(step.name))
    else saw.push(once(step.key, () => effect(url, plan.id, step.key, saw)) as string)
  }
  if (plan.fails) throw new RangeError(`the sum is ${sum}`)
  return { sum, saw, got }
}

export function compute(start: number, turns: number): number {
  'use task movable'
  let sum = start
  for (let turn = 0; turn < turns; turn++) {
    for (let step = 0; step < 1000; step++) sum = (sum * 31 + step) % 1_000_003
  }
  return sum
}

let pool: pg.Pool | null = null

/** Each call leaves a row and returns another value. */
async function effect(url: string, run: string, key: string, saw: readonly string[]): Promise<string> {
  'use task'
  if (pool === null) {
    pool = new pg.Pool({ connectionString: url, max: 2, application_name: 'effects' })
    pool.on('error', () => undefined)
  }
  const value = Math.random().toString(36).slice(2)
  for (;;) {
    try {
      await pool.query('insert into effect (run, key, value, saw) values ($1, $2, $3, $4)', [
        run,
        key,
        value,
        saw,
      ])
      return value
    } catch (error) {
      if (!isTransient(error)) throw error
      await new Promise(resolve => setTimeout(resolve, 100))
    }
  }
}
