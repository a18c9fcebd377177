import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildLinuxFutex, runOnLinux } from './linux.ts'
import { makeScript } from './script.ts'

/**
 * `node test/futex/record-linux.ts [scripts]`: runs scripts on the kernel of this machine, and records its
 * answers.
 */
const program = buildLinuxFutex()
if (program === undefined) throw new Error('this needs Linux and a C compiler')
const recorded: Record<string, string[]> = {}
for (let seed = 1; seed <= Number(process.argv[2] ?? 150); seed++) {
  recorded[seed] = runOnLinux(program, makeScript(seed))
}
const path = join(import.meta.dirname, 'fixtures', 'linux-answers.json')
const body = Object.entries(recorded).map(([seed, lines]) => `  "${seed}": ${JSON.stringify(lines)}`)
writeFileSync(path, `{\n${body.join(',\n')}\n}\n`)
