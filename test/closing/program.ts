import { Kernel } from '../../src/index.ts'
import { Broken, rows } from './rows.ts'

/**
 * Breaks one kernel after the other, and closes each. Prints a line of JSON before each row and after it: how
 * its tasks ended, and the errors that the kernel reported. Then it exits by itself, unless something keeps
 * the process alive.
 */
const only = process.argv[2]

process.on('uncaughtException', error => {
  if (error.message !== 'a listener') throw error
})

for (const { way, options, breaks, close, after } of rows) {
  if (only !== undefined && !way.includes(only)) continue
  console.log(JSON.stringify({ way }))
  const kernel = await Kernel.boot({ grace: 50, watchdog: false, control: false, ...options })
  const work = await kernel.import<typeof import('./work.ts')>(new URL('./work.ts', import.meta.url))
  const told: string[] = []
  kernel.on('error', ({ code }) => told.push(code))
  kernel.on('failure', () => undefined)
  const at = new Broken(kernel, work as never)
  await breaks(at)
  await (close?.(at) ?? at.close())
  const ends = new Set<string>()
  for (const task of at.tasks) {
    await task.then(
      () => ends.add('returned'),
      (error: Error) => ends.add(error.name),
    )
  }
  await after?.(at)
  at.dispose()
  console.log(JSON.stringify({ way, ends: [...ends], told }))
}
