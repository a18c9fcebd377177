/** The name of a run, a message or an effect. `what`: where it stands, for the error. */
export function checkName(what: string, name: unknown, most: number = 500): asserts name is string {
  if (typeof name !== 'string' || name === '' || name.length > most || name.includes('\0'))
    throw new TypeError(
      `${what}: ${shown(name)} is not a name; give a string of 1 to ${most} characters, none of them NUL`,
    )
}

function shown(name: unknown): string {
  if (typeof name !== 'string') return String(name)
  return `'${(name.length > 50 ? `${name.slice(0, 50)}…` : name).replaceAll('\0', String.raw`\0`)}'`
}
