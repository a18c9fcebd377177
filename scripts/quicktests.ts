import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

/**
 * Which test files `npm run quick` runs. Each run of the unit tests records how long every file took. A file
 * is quick if each of its tests took less than a second; the shortest files come first, until they fill the
 * time. A file of src that has no record yet is quick unless its text shows that it starts processes,
 * threads or kernels, or explores checks; its first run records it.
 */
const TEST_MS_MAX = 1000
/** The recorded time of all quick files together. Four files run at a time. */
const ALL_MS_MAX = 60_000
const SLOW =
  /child_process|worker_threads|\bKernel\b|NodeMachine|puppeteer|checker\/check\.ts|\.\.\/check\.ts/

interface Duration {
  readonly longest: number
  readonly whole: number
}

export interface FileResult {
  readonly name: string
  readonly status: string
  readonly startTime: number
  readonly endTime: number
  readonly assertionResults: readonly {
    readonly status: string
    readonly fullName: string
    readonly duration?: number | null
  }[]
}

const record = (root: string): string => join(root, 'node_modules', '.cache', 'test-durations.json')

function recorded(root: string): Record<string, Duration> {
  try {
    return JSON.parse(readFileSync(record(root), 'utf8')) as Record<string, Duration>
  } catch {
    return {}
  }
}

export function recordDurations(root: string, files: readonly FileResult[]): void {
  const durations = recorded(root)
  for (const { name, status, startTime, endTime, assertionResults } of files) {
    if (status !== 'passed') continue
    const longest = Math.max(0, ...assertionResults.map(({ duration }) => duration ?? 0))
    durations[relative(root, name)] = { longest, whole: endTime - startTime }
  }
  mkdirSync(dirname(record(root)), { recursive: true })
  writeFileSync(record(root), JSON.stringify(durations))
}

/** The quick test files, by their paths in the tree. */
export function quickFiles(root: string, all: readonly string[] = testFiles(root)): string[] {
  const durations = recorded(root)
  const known = all
    .filter(file => (durations[file]?.longest ?? Infinity) < TEST_MS_MAX)
    .sort((a, b) => durations[a]!.whole - durations[b]!.whole)
  let whole = 0
  const quick = known.filter(file => (whole += durations[file]!.whole) <= ALL_MS_MAX)
  const fresh = all.filter(
    file =>
      file.startsWith('src/') &&
      durations[file] === undefined &&
      !SLOW.test(readFileSync(join(root, file), 'utf8')),
  )
  return [...quick, ...fresh].sort()
}

function testFiles(root: string): string[] {
  return globSync('{src,test,bench,examples}/**/*.test.ts', {
    cwd: root,
    exclude: name => name === 'node_modules' || name === 'fixtures',
  })
}
