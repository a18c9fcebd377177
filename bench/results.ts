import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { arch, cpus, platform, release, totalmem } from 'node:os'
import { resolve } from 'node:path'
import type { Row } from './harness.ts'

/**
 * A whole run: the measurements, the machine, the versions and the commit. Checked in as
 * bench/results/results.json.
 */
export interface Results {
  readonly commit: string
  readonly date: string
  readonly seconds: number
  readonly machine: {
    readonly cpu: string
    readonly cores: number
    readonly memoryGiB: number
    readonly system: string
  }
  readonly versions: Readonly<Record<string, string>>
  /** What was left out, and why. */
  readonly omitted: readonly string[]
  readonly rows: readonly Row[]
}

const folder = resolve(import.meta.dirname, 'results')
export const resultsFile: string = resolve(folder, 'results.json')
export const reportFile: string = resolve(folder, 'report.html')

const peers = ['piscina', 'workerpool', 'tinypool', 'poolifier', 'effect', 'async-mutex']

export function describeRun(rows: readonly Row[], omitted: readonly string[], seconds: number): Results {
  const versions: Record<string, string> = { node: process.version, v8: process.versions.v8 }
  for (const peer of peers) {
    const found = JSON.parse(
      readFileSync(resolve(import.meta.dirname, `../node_modules/${peer}/package.json`), 'utf8'),
    ) as { version: string }
    versions[peer] = found.version
  }
  return {
    commit: commit(),
    date: new Date().toISOString(),
    seconds: Math.round(seconds),
    machine: {
      cpu: cpus()[0].model.trim(),
      cores: cpus().length,
      memoryGiB: Math.round(totalmem() / 2 ** 30),
      system: `${platform()} ${release()} ${arch()}`,
    },
    versions,
    omitted,
    rows,
  }
}

function commit(): string {
  try {
    const run = (...args: string[]): string =>
      execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
    const changed = run('status', '--porcelain', '--', 'src', 'bench/*.ts') !== ''
    return run('rev-parse', '--short=12', 'HEAD') + (changed ? ' and changes' : '')
  } catch {
    return 'unknown'
  }
}

export function saveResults(results: Results, report: string): void {
  mkdirSync(folder, { recursive: true })
  writeFileSync(resultsFile, `${JSON.stringify(results, null, 1)}\n`)
  writeFileSync(reportFile, report)
}

export function loadResults(): Results {
  return JSON.parse(readFileSync(resultsFile, 'utf8')) as Results
}
