import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { askLinux, buildLinuxFutex } from './linux.ts'
import { makePiScript, piLineOf } from './pi-script.ts'

/**
 * `node test/futex/record-linux-pi.ts [scripts]`: runs scripts about locks on the kernel of this machine, and
 * records its answers. Every second script gives its actors real-time priorities, which needs the permission
 * to do so.
 */
const program = buildLinuxFutex('linux-pi.c')
if (program === undefined) throw new Error('this needs Linux and a C compiler')
const body: string[] = []
for (let seed = 1; seed <= Number(process.argv[2] ?? 240); seed++) {
  const priorities = seed % 2 === 0
  const lines = askLinux(program, makePiScript(seed, priorities).map(piLineOf))
  body.push(`  "${seed}": ${JSON.stringify({ priorities, lines })}`)
}
const path = join(import.meta.dirname, 'fixtures', 'linux-pi-answers.json')
writeFileSync(path, `{\n${body.join(',\n')}\n}\n`)
