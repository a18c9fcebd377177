'use task'

/** A sort whose comparator is the program's own. */
export const size = 20_000
export const small = 100

interface Row {
  group: number
  name: string
}

export function run(count: number): number {
  const rows: Row[] = []
  let x = 7
  for (let i = 0; i < count; i++) {
    x = (Math.imul(x, 1_103_515_245) + 12_345) & 0x7fffffff
    rows.push({ group: x % 50, name: `n${x % 9973}` })
  }
  rows.sort((a, b) => a.group - b.group || (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
  let checksum = 0
  for (let i = 0; i < rows.length; i++) checksum = (checksum + rows[i]!.group * i + rows[i]!.name.length) | 0
  return checksum
}
