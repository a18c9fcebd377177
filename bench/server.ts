/**
 * A server with unmarked libraries (examples/server), driven over loopback: on piscina, on heddle/piscina
 * with `compile`, and with priorities. It measures how long requests delay short ones, and what this costs
 * the long ones. The three take turns, each in its own process.
 */
import { drive, type Figures, type Variant } from '../examples/server/drive.ts'
import { compare, type Row, type Target } from './harness.ts'

const ROUNDS = 3
const PICTURES = 96
const WARM = 32
const variants: readonly Variant[] = ['piscina', 'heddle', 'priorities']

export async function* rows(): AsyncIterable<Row> {
  const runs: Record<Variant, Figures[]> = { piscina: [], heddle: [], priorities: [] }
  for (let round = 0; round < ROUNDS; round++) {
    // A different one is first each time.
    for (let turn = 0; turn < variants.length; turn++) {
      const variant = variants[(round + turn) % variants.length]
      runs[variant].push(await drive(variant, PICTURES, WARM))
    }
  }
  const p99 = ({ shortP99 }: Figures): number => shortP99
  const msPerPicture = ({ longPerSecond }: Figures): number => 1000 / longPerSecond
  yield await row('server/short-p99', runs, 'heddle', p99, { least: 20 })
  yield await row('server/long-throughput', runs, 'heddle', msPerPicture, { least: 0.9 })
  yield await row('server/short-p99-priority', runs, 'priorities', p99, { least: 20 })
  yield await row('server/long-throughput-priority', runs, 'priorities', msPerPicture, { least: 0.9 })
}

function row(
  name: string,
  runs: Readonly<Record<Variant, readonly Figures[]>>,
  variant: Variant,
  figure: (figures: Figures) => number,
  target: Target,
): Promise<Row> {
  // The first call of each is for the round that `compare` discards.
  const taker = (of: Variant): (() => number) => {
    let round = -1
    return () => figure(runs[of][Math.max(0, round++)])
  }
  return compare({
    row: name,
    against: 'piscina',
    unit: 'ms',
    rounds: ROUNDS,
    ours: taker(variant),
    base: taker('piscina'),
    target,
  })
}
