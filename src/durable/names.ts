import { show } from '../coroutine/core/knownoptions.ts'

/** An index of PostgreSQL takes 2,700 bytes in all, and some have two names. */
const BYTES_MAX = 1000

/**
 * The name of a run, a message or an effect. `what`: where it stands, for the error. A database would store
 * half of a surrogate pair as U+FFFD: two names would be one.
 */
export function checkName(
  what: string,
  name: unknown,
  most: number = 500,
  bytesMost: number = BYTES_MAX,
): asserts name is string {
  if (typeof name === 'string' && name !== '' && name.length <= most && isText(name)) {
    const bytes = Buffer.byteLength(name)
    if (bytes <= bytesMost) return
    throw new TypeError(
      `${what}: ${shown(name)} has ${bytes} bytes in UTF-8; give a string of at most ${bytesMost} bytes`,
    )
  }
  throw new TypeError(
    `${what}: ${shown(name)} is not a name; give a string of 1 to ${most} characters, without NUL and halves of surrogate pairs`,
  )
}

function isText(name: string): boolean {
  return !name.includes('\0') && name.isWellFormed()
}

function shown(name: unknown): string {
  if (typeof name !== 'string') return show(name)
  const text = name.length > 50 ? `${name.slice(0, 50)}…` : name
  const escaped = text
    .replaceAll('\0', String.raw`\0`)
    .replace(/\p{Surrogate}/gu, half => String.raw`\u` + half.charCodeAt(0).toString(16))
  return `'${escaped}'`
}
