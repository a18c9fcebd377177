import { CheckError } from '../errors.ts'

/** A thread that dies, and the step before which it dies. */
export interface Crash {
  readonly thread: number
  readonly step: number
}

export interface Schedule {
  readonly threads: readonly number[]
  readonly crashes: readonly Crash[]
}

/**
 * A schedule as a short string: the threads in the order of their steps, with a count for each run:
 * `0x3.1.0x2` is 0 0 0 1 0 0. Deaths come first: `0!5/` means that thread 0 dies before its step 5.
 */
export function formatSchedule({ threads, crashes }: Schedule): string {
  const parts: string[] = []
  for (let at = 0; at < threads.length; ) {
    let end = at
    while (end < threads.length && threads[end] === threads[at]) end++
    parts.push(end - at === 1 ? `${threads[at]}` : `${threads[at]}x${end - at}`)
    at = end
  }
  const deaths = crashes.map(({ thread, step }) => `${thread}!${step}/`).join('')
  return deaths + parts.join('.')
}

export function parseSchedule(text: string): Schedule {
  const crashes: Crash[] = []
  let rest = text.trim()
  for (;;) {
    const death = /^(\d+)!(\d+)\//.exec(rest)
    if (death === null) break
    crashes.push({ thread: Number(death[1]), step: Number(death[2]) })
    rest = rest.slice(death[0].length)
  }
  const threads: number[] = []
  for (const part of rest === '' ? [] : rest.split('.')) {
    const run = /^(\d+)(?:x(\d+))?$/.exec(part)
    if (run === null || Number(run[1]) > 31 || Number(run[2] ?? 1) > 1e6) {
      throw new CheckError(
        'ERR_CHECK_SCHEDULE',
        `\`${part}\` is not part of a schedule; one looks like \`0x3.1.0x2\`, as a report prints it`,
      )
    }
    for (let i = Number(run[2] ?? 1); i > 0; i--) threads.push(Number(run[1]))
  }
  return { threads, crashes }
}
