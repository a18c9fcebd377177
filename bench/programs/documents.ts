'use task'

/** Large documents through the language's own functions: written, read and put in order. */
export const size = 20_000
export const small = 100

interface Row {
  id: number
  name: string
  tags: string[]
}

export function run(count: number): number {
  const rows: Row[] = []
  for (let i = 0; i < count; i++) {
    const id = Math.imul(i, 2_654_435_761) >>> 0
    rows.push({ id, name: `row ${id}`, tags: [`t${i % 7}`, 'common'] })
  }
  const text = JSON.stringify({ rows, count })
  const read = JSON.parse(text) as { rows: Row[] }
  const names = read.rows.map(({ name }) => name).sort()
  const ids = read.rows.map(({ id }) => id).sort()
  return text.length + names.indexOf('row 0') + ids.indexOf(0)
}
