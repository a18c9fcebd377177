/**
 * Refuses options that are not an object, and an option that does not exist: JavaScript itself would ignore
 * `prority: 'high'`. `known` has every option as a key, so that the type checker keeps it complete.
 */
export function refuseUnknown(what: string, options: unknown, known: Readonly<Record<string, true>>): void {
  checkObject(what, options, known)
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
  checkObject(what, options, kinds)
  for (const key in options) {
    if (!Object.hasOwn(options, key)) continue
    const kind = Object.hasOwn(kinds, key) ? kinds[key] : undefined
    if (kind === undefined) throw unknownOption(what, key, Object.keys(kinds))
    const value: unknown = options[key as never]
    if (kind === 'checked' || value === undefined || typeof value === kind) continue
    throw new TypeError(`${what}: ${key}: ${show(value)} is not a ${kind}; give ${wanted[kind]}`)
  }
}

/** Refuses options that are not an object, and lists the known ones. */
export function checkObject(what: string, options: unknown, known: object): asserts options is object {
  if (typeof options === 'object' && options !== null && !Array.isArray(options)) return
  throw new TypeError(
    `${what}: ${show(options)} is not an object with options; give { ${Object.keys(known).join(', ')} }, or nothing`,
  )
}

/** A value of any type in an error message. */
export function show(value: unknown): string {
  if (typeof value === 'string') return `'${value}'`
  if (typeof value === 'function') return `function ${value.name}`
  if (Array.isArray(value))
    return `[${value.slice(0, 8).map(showInside).join(', ')}${value.length > 8 ? ', …' : ''}]`
  try {
    return isPlain(value) ? showFields(value) : String(value)
  } catch {
    return 'an object that cannot be shown'
  }
}

function isPlain(value: unknown): value is object {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
}

function showFields(value: object): string {
  const fields = Object.entries(value)
  const shown = fields.slice(0, 4).map(([key, field]) => `${key}: ${showInside(field)}`)
  if (fields.length > 4) shown.push('…')
  return shown.length === 0 ? '{}' : `{ ${shown.join(', ')} }`
}

function showInside(value: unknown): string {
  if (Array.isArray(value)) return '[…]'
  return isPlain(value) ? '{…}' : show(value)
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
