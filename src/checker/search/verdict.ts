import type { CheckResult } from './search.ts'

/** A search passed only if nothing failed and nothing was left out. `why`: what was left out. */
export function verdict(
  hasFailed: boolean,
  why: readonly string[],
): Pick<CheckResult, 'ok' | 'complete' | 'outcome' | 'why'> {
  const complete = why.length === 0
  return {
    ok: !hasFailed,
    complete,
    outcome: hasFailed ? 'failed' : complete ? 'passed' : 'incomplete',
    why: why.join('; '),
  }
}
