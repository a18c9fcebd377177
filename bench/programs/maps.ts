'use task'

/** Maps and sets under way: counting, grouping, deleting. */
export const size = 150_000
export const small = 500

export function run(turns: number): number {
  const counts = new Map<number, number>()
  const recent = new Set<number>()
  let x = 1
  for (let i = 0; i < turns; i++) {
    x = (Math.imul(x, 1_103_515_245) + 12_345) & 0x7fffffff
    const key = x % 5003
    counts.set(key, (counts.get(key) ?? 0) + 1)
    recent.add(key)
    if (recent.size > 100) recent.delete((key * 7) % 5003)
  }
  let checksum = recent.size
  for (const [key, count] of counts) checksum = (checksum + key * count) | 0
  return checksum
}
