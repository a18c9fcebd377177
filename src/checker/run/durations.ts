/**
 * The durations of checks in the last run, for their order in this run and the estimate of the remaining
 * time.
 */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { cacheFolder, DiskCache } from '../../compiler/loading/diskcache.ts'
import type { CheckToRun } from './runcheck.ts'

export class Durations {
  private readonly caches = new Map<string, DiskCache>()
  private readonly known = new Map<CheckToRun, number | undefined>()
  /** Seconds and number of the checks that have ended or whose duration is known. */
  private seconds = 0
  private checks = 0

  get isKnown(): boolean {
    return this.checks > 0
  }

  /** In seconds. For a check that has not run before: the mean of the others. */
  expected(job: CheckToRun): number {
    if (!this.known.has(job)) {
      const text = this.cacheOf(job)?.readText(keyOf(job)) ?? null
      this.note(job, text === null ? undefined : Number(text))
    }
    return this.known.get(job) ?? (this.checks === 0 ? 0 : this.seconds / this.checks)
  }

  record(job: CheckToRun, seconds: number): void {
    this.note(job, seconds)
    this.cacheOf(job)?.writeText(keyOf(job), seconds.toFixed(3))
  }

  private note(job: CheckToRun, seconds: number | undefined): void {
    const before = this.known.get(job)
    this.known.set(job, seconds)
    if (seconds === undefined) return
    this.seconds += seconds - (before ?? 0)
    if (before === undefined) this.checks++
  }

  private cacheOf({ file }: CheckToRun): DiskCache | undefined {
    const folder = cacheFolder(file)
    if (folder === null) return undefined
    let cache = this.caches.get(folder)
    if (cache === undefined) this.caches.set(folder, (cache = new DiskCache(join(folder, 'durations'))))
    return cache
  }
}

function keyOf({ file, check }: CheckToRun): string {
  return createHash('sha256')
    .update(JSON.stringify([file, check.name, check.id]))
    .digest('hex')
}
