import type { Channel, WaitGroup } from '../../src/index.ts'

const items = ['apples', 'bread', 'cheese', 'dates']

/** In place of a file or a socket. */
export function read(lines: Channel<string>, count: number): number {
  'use task'
  for (let n = 0; n < count; n++) lines.send(`${items[n % items.length]};${(n * 7) % 1000}`)
  lines.close()
  return count
}

export function parse(
  lines: Channel<string>,
  orders: Channel<{ item: string; cents: number }>,
  parsing: WaitGroup,
): void {
  'use task'
  for (const line of lines) {
    const [item, cents] = line.split(';')
    orders.send({ item, cents: Number(cents) })
  }
  parsing.done()
}

export function add(orders: Channel<{ item: string; cents: number }>): Map<string, number> {
  'use task'
  const totals = new Map<string, number>()
  for (const { item, cents } of orders) totals.set(item, (totals.get(item) ?? 0) + cents)
  return totals
}
