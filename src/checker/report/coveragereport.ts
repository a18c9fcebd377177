import type { FileCoverage, Place } from './coverage.ts'
import { shorten } from './paths.ts'

/** How often each line with the start of a statement was reached. */
function linesOf({ statements }: FileCoverage): Map<number, number> {
  const lines = new Map<number, number>()
  for (const { line, hits } of statements) lines.set(line, Math.max(lines.get(line) ?? 0, hits))
  return lines
}

/** The coverage as text: for each file the share that was reached, and the places that were not. */
export function formatCoverage(files: readonly FileCoverage[]): string {
  const rows = files.map(file => {
    const lines = [...linesOf(file)]
    const missed = lines.filter(([, hits]) => hits === 0).map(([line]) => line)
    const ways = file.branches.filter(({ hits }) => hits === 0)
    return [
      `  ${shorten(file.file)}: ${share(lines.length - missed.length, lines.length, 'line')}, ${share(file.branches.length - ways.length, file.branches.length, 'branch')}`,
      ...(missed.length === 0
        ? []
        : [`    lines not reached: ${rangesOf(missed, [...linesOf(file).keys()])}`]),
      ...ways.map(
        place =>
          `    branch not taken: ${nameOf(place)} at ${shorten(file.file)}:${place.line}:${place.column}`,
      ),
    ].join('\n')
  })
  return ['coverage, over all executions:', ...rows].join('\n')
}

const NAMES: Readonly<Record<string, string>> = {
  '?': 'the first value of ?:',
  ':': 'the second value of ?:',
}

function nameOf({ what }: Place): string {
  return NAMES[what] ?? (/^\W+$/.test(what) ? `the right side of ${what}` : `\`${what}\``)
}

function share(reached: number, all: number, noun: string): string {
  const plural = noun === 'branch' ? 'branches' : `${noun}s`
  return `${reached} of ${all} ${all === 1 ? noun : plural}`
}

/** "3, 7-9". Lines without statements do not interrupt a range. */
function rangesOf(missed: readonly number[], all: readonly number[]): string {
  const order = new Map([...all].sort((a, b) => a - b).map((line, at) => [line, at]))
  const ranges: [number, number][] = []
  for (const line of [...missed].sort((a, b) => a - b)) {
    const last = ranges.at(-1)
    if (last !== undefined && order.get(last[1])! + 1 === order.get(line)) last[1] = line
    else ranges.push([line, line])
  }
  return ranges.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(', ')
}

/** The coverage in the format of lcov, which editors and services read. */
export function toLcov(files: readonly FileCoverage[]): string {
  const records = files.map(file => {
    const lines = [...linesOf(file)].sort(([a], [b]) => a - b)
    const taken = file.branches.filter(({ hits }) => hits > 0)
    return [
      'TN:',
      `SF:${file.file}`,
      ...lines.map(([line, hits]) => `DA:${line},${hits}`),
      `LF:${lines.length}`,
      `LH:${lines.filter(([, hits]) => hits > 0).length}`,
      ...file.branches.map(({ line, hits }, n) => `BRDA:${line},0,${n},${hits}`),
      `BRF:${file.branches.length}`,
      `BRH:${taken.length}`,
      'end_of_record',
    ].join('\n')
  })
  return `${records.join('\n')}\n`
}
