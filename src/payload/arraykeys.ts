const hasOwn = Object.hasOwn

export function isIndex(key: string): boolean {
  const number = Number(key)
  return number >= 0 && number < 0xffff_ffff && String(number >>> 0) === key
}

/** The keys of an array that are not its indices; null if there are none. */
export function namedKeys(value: readonly unknown[]): string[] | null {
  const keys = Object.keys(value)
  const last = keys.length - 1
  if (last < 0 || isIndex(keys[last])) return null
  let first = last
  while (first > 0 && !isIndex(keys[first - 1])) first--
  return keys.slice(first)
}

/** The named properties of a regular expression's match; null for any other array. */
export function matchKeys(value: readonly unknown[]): string[] | null {
  if (!hasOwn(value, 'index') || !hasOwn(value, 'input')) return null
  return ['index', 'input', 'groups', 'indices'].filter(key =>
    Object.prototype.propertyIsEnumerable.call(value, key),
  )
}
