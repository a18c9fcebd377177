import { parseArgs } from 'node:util'
import { durableChaos } from '../test/slow/durable/durablechaos.ts'

/**
 * `node scripts/durablechaos.ts [--seeds 1] [--from 1] [--runs 2000] [--seconds 60] [--soak]`: the chaos of
 * durable runs, for many seeds one after the other. `--soak`: for an hour, 100,000 runs. `--quiet`: only the
 * last line of each seed.
 */
const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1' },
    from: { type: 'string', default: '1' },
    runs: { type: 'string' },
    seconds: { type: 'string' },
    soak: { type: 'boolean', default: false },
    quiet: { type: 'boolean', default: false },
  },
})
const runs = Number(values.runs ?? (values.soak ? 100_000 : 2000))
const time = Number(values.seconds ?? (values.soak ? 3600 : 60)) * 1000
const first = Number(values.from)
for (let seed = first; seed < first + Number(values.seeds); seed++) {
  const begun = performance.now()
  const { mistakes, done, states, takeovers, repeated } = await durableChaos({
    seed,
    runs,
    time,
    ...(!values.quiet && { log: line => console.log(line) }),
  })
  for (const { run, what } of mistakes.slice(0, 50)) console.log(`${run}: ${what}`)
  const seconds = ((performance.now() - begun) / 1000).toFixed(0)
  console.log(
    `seed ${seed}, ${seconds} s: ${mistakes.length} mistakes; ${JSON.stringify({ ...done, ...states, takeovers, repeated })}`,
  )
  if (mistakes.length > 0) process.exitCode = 1
}
