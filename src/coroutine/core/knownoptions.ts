/**
 * Refuses an option that does not exist: JavaScript itself would ignore `prority: 'high'`. `known` has every
 * option as a key, so that the type checker keeps it complete.
 */
export function refuseUnknown(what: string, options: object, known: Readonly<Record<string, true>>): void {
  for (const key in options) {
    // A property that a program has put on Object.prototype is not an option.
    if (known[key] === true || !Object.hasOwn(options, key)) continue
    throw unknownOption(what, key, Object.keys(known))
  }
}

function unknownOption(what: string, key: string, known: readonly string[]): TypeError {
  const near = known.find(name => isNear(key, name))
  const hint = near === undefined ? `it takes ${known.join(', ')}` : `did you mean ${near}?`
  return new TypeError(`${what}: there is no option '${key}'; ${hint}`)
}

/** The type of an option's value; 'checked': the code that uses the option checks it. */
export type OptionKind = keyof typeof wanted | 'checked'

/** The kind of every option of `O`. */
export type Kinds<O> = Readonly<Record<keyof O & string, OptionKind>>

const wanted = {
  boolean: 'true or false',
  string: 'a text',
  number: 'a number',
  function: 'a function',
}

/**
 * Refuses options that are not an object, options that do not exist, and values of another type. An option
 * that is undefined counts as left out.
 */
export function checkOptions(
  what: string,
  options: unknown,
  kinds: Readonly<Record<string, OptionKind>>,
): void {
  if (typeof options !== 'object' || options === null) {
    throw new TypeError(
      `${what}: ${shown(options)} is not an object with options; give { ${Object.keys(kinds).join(', ')} }, or nothing`,
    )
  }
  for (const key in options) {
    if (!Object.hasOwn(options, key)) continue
    const kind = Object.hasOwn(kinds, key) ? kinds[key] : undefined
    if (kind === undefined) throw unknownOption(what, key, Object.keys(kinds))
    const value: unknown = options[key as never]
    if (kind === 'checked' || value === undefined || typeof value === kind) continue
    throw new TypeError(`${what}: ${key}: ${shown(value)} is not a ${kind}; give ${wanted[kind]}`)
  }
}

function shown(value: unknown): string {
  return typeof value === 'string' ? `'${value}'` : String(value)
}

/** Every option of `O`, once. */
export type Known<O> = Readonly<Record<keyof O & string, true>>

/** At most two letters are missing, too many, or others. */
function isNear(left: string, right: string): boolean {
  const [a, b] = [left.toLowerCase(), right.toLowerCase()]
  if (Math.abs(a.length - b.length) > 2) return false
  let row = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)))
    }
    row = next
  }
  return row[b.length]! <= Math.min(2, a.length - 1)
}
