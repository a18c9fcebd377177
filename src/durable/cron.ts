import { show } from '../coroutine/core/knownoptions.ts'

/**
 * Refuses what the engine would take for another schedule: it fills missing fields up, and starts a run of a
 * sixth field, the seconds, once a minute. The values of the fields are the engine's to check (`cronError`).
 */
export function checkCron(key: string, cron: unknown, timeZone: unknown): asserts cron is string {
  const call = `schedule('${key}', cron)`
  if (typeof cron !== 'string' || !isCron(cron)) throw new TypeError(cronText(call, cron))
  if (timeZone !== undefined && !isTimeZone(timeZone))
    throw new RangeError(
      `schedule('${key}'): timeZone: ${show(timeZone)} is not a time zone; give a name as in 'Europe/Berlin', or 'UTC'`,
    )
}

/** The engine does not take an expression. */
export function cronError(key: string, cron: string, cause: Error): TypeError {
  return new TypeError(cronText(`schedule('${key}', cron)`, cron, cause.message), { cause })
}

function cronText(call: string, cron: unknown, why?: string): string {
  const because = why === undefined ? '' : ` (${why})`
  return `${call}: ${show(cron)} is not a cron expression${because}; give five fields (minute, hour, day, month, day of the week), as in '30 3 * * *', or one of @hourly, @daily, @weekly, @monthly, @yearly`
}

function isCron(text: string): boolean {
  const fields = text.trim().split(/\s+/)
  return fields.length === 5 || (fields.length === 1 && /^@(?!secondly$)[a-z]+$/.test(fields[0]!))
}

function isTimeZone(name: unknown): boolean {
  try {
    return typeof name === 'string' && Intl.DateTimeFormat('en', { timeZone: name }) !== null
  } catch {
    return false
  }
}
