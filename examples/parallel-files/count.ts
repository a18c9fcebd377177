import { readFileSync } from 'node:fs'

export interface Counts {
  readonly file: string
  readonly lines: number
  readonly words: number
  readonly longest: number
}

/** A long file does not delay others: the task is preempted. */
export function count(file: string): Counts {
  'use task'
  const text = readFileSync(file, 'utf8')
  let lines = 0
  let words = 0
  let longest = 0
  for (const line of text.split('\n')) {
    lines++
    longest = Math.max(longest, line.length)
    for (const word of line.split(/\s+/)) if (word !== '') words++
  }
  return { file, lines, words, longest }
}
