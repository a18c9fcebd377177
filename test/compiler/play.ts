/**
 * Runs compiled programs on a Node without the compiler: reads them from a file, and prints the differences.
 */
import { readFileSync } from 'node:fs'
import { type Program, runPlain, runTwin } from './differential/drive.ts'
import { instantiatorOf, type ModuleText } from './differential/instantiate.ts'
import * as runtime from '../../src/compiler/runtime.ts'

export interface Play {
  readonly plain: ModuleText
  /** The same by each lowering, in strips of each length. */
  readonly compiled: readonly { readonly by: string; readonly text: ModuleText }[]
}

export interface Played {
  programs: number
  preemptions: number
  differences: { file: string; program: string; by: string; expected: unknown; got: unknown }[]
}

const modules = { 'heddle/runtime': runtime }
const played: Played = { programs: 0, preemptions: 0, differences: [] }

for (const { plain, compiled } of JSON.parse(readFileSync(process.argv[2]!, 'utf8')) as Play[]) {
  const original = instantiatorOf(plain)
  const forms = compiled.map(({ by, text }) => ({ by, instantiate: instantiatorOf(text) }))
  const names = Object.entries(original(modules)).filter(([, value]) => typeof value === 'function')
  for (const [program] of names) {
    played.programs++
    const expected = await runPlain(original(modules)[program] as Program)
    for (const { by, instantiate } of forms) {
      const compare = (what: string, got: unknown): void => {
        if (JSON.stringify(got) === JSON.stringify(expected)) return
        played.differences.push({ file: plain.file, program, by: `${by}, ${what}`, expected, got })
      }
      compare('called plainly', await runPlain(instantiate(modules)[program] as Program))
      for (const every of [false, true]) {
        const { preemptions, ...outcome } = await runTwin(instantiate(modules)[program] as Program, every)
        compare(every ? 'preempted at every safepoint' : 'never preempted', outcome)
        played.preemptions += preemptions
      }
    }
  }
}

console.log(JSON.stringify(played))
