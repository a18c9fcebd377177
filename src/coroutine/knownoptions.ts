/**
 * Refuses an option that does not exist: in JavaScript nothing else would say that `prority: 'high'` does nothing. `known` has every
 * option as a key, so that the type checker keeps it whole.
 */
export function refuseUnknown(what: string, options: object, known: Readonly<Record<string, true>>): void {
  for (const key in options) {
    // What a program has put on Object.prototype was given to nobody.
    if (known[key] === true || !Object.hasOwn(options, key)) continue
    const near = Object.keys(known).find(name => isNear(key, name))
    const hint = near === undefined ? `it takes ${Object.keys(known).join(', ')}` : `did you mean ${near}?`
    throw new TypeError(`${what}: there is no option '${key}'; ${hint}`)
  }
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
