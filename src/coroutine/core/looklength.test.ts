import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { look, lookInTime } from './frames.ts'

/** V8 inlines no function whose bytecode is longer. */
const inlined_bytes_most = 460

test.for([look.name, lookInTime.name])('%s is too long to be inlined into the loops that call it', name => {
  const file = new URL('./frames.ts', import.meta.url).href
  const program = `import { ${name} } from ${JSON.stringify(file)}; ${name}(0)`
  const flags = ['--print-bytecode', `--print-bytecode-filter=${name}`, '--input-type=module']
  const printed = execFileSync(process.execPath, [...flags, '-e', program], { encoding: 'utf8' })
  const length = /Bytecode length: (\d+)/.exec(printed)
  expect(Number(length?.[1])).toBeGreaterThan(inlined_bytes_most)
})
