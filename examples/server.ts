/**
 * Coming from piscina: a server that resizes pictures and answers short requests, on piscina, on
 * heddle/piscina, and with priorities. All three run the same code and the same libraries (jpeg-js, marked),
 * which do not use heddle. Two lines differ: the import, and `"heddle": { "compile": "all" }` in
 * package.json.
 *
 *     npm start [-- pictures]
 */
import { drive, type Figures, type Variant } from './server/drive.ts'

/** Timed pictures for each of the three, after a few to warm up. */
const LONG = Number(process.argv[2] ?? 32)
const WARM = Math.min(LONG, 16)

const variants: readonly (readonly [Variant, string])[] = [
  ['piscina', "import Piscina from 'piscina'"],
  ['heddle', "import Piscina from 'heddle/piscina'"],
  ['priorities', "the same, and pool.run(task, { priority: 'high' }) for short requests"],
]

console.log(
  `A server with 2 workers. 16 clients resize pictures (jpeg-js), 60 clients ask for something small (marked, ping) once a second.
Three runs of some seconds, each in a process of its own:
`,
)
console.log(
  `${'short requests: median'.padStart(24)} ${'99 of 100 within'.padStart(18)} ${'pictures'.padStart(12)}`,
)
let base: Figures | undefined
for (const [variant, line] of variants) {
  progress(`   … ${LONG} pictures with ${line}`)
  const figures = await drive(variant, LONG, WARM)
  progress('')
  base ??= figures
  const times = base.shortP99 / figures.shortP99
  const better = figures === base ? '' : `   ${times.toFixed(times < 10 ? 1 : 0)} times sooner`
  console.log(
    `${ms(figures.shortP50).padStart(24)} ${ms(figures.shortP99).padStart(18)} ${`${figures.longPerSecond.toFixed(1)}/s`.padStart(12)}   ${line}${better}`,
  )
}
console.log(
  '\nThe import is in examples/server/server.ts; examples/server/package.json says which modules are preempted: "compile": "all". Coming from another pool: docs/coming-from.md',
)

function ms(value: number): string {
  return `${value < 10 ? value.toFixed(1) : value.toFixed(0)} ms`
}

/** Progress on a terminal; the next line replaces it. */
function progress(text: string): void {
  if (process.stdout.isTTY) process.stdout.write(`\r\x1b[K${text}`)
}
