import { fileURLToPath } from 'node:url'
import { runChecks } from '../../src/checker/run/runner.ts'

/** Runs checks of which some must fail, and prints the report and its meaning. */
export async function showChecks(file: URL, meaning: string): Promise<void> {
  let report = ''
  const code = await runChecks(
    [fileURLToPath(file)],
    { override: {}, cache: false },
    { out: text => (report += text), err: text => void process.stderr.write(text), live: false },
  )
  console.log(report.trimEnd())
  console.log(code === 1 ? `\n${meaning}` : `\nunexpected: the checks ended with ${code}`)
  process.exitCode = code === 1 ? 0 : 1
}
