/** `npm run example [name] [arguments…]`: runs an example, or lists them. */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'

const [name, ...args] = process.argv.slice(2)
const file = resolve(import.meta.dirname, `${name}.ts`)
if (name !== undefined && name !== 'main' && existsSync(file)) {
  process.exitCode = spawnSync(process.execPath, [file, ...args], { stdio: 'inherit' }).status ?? 1
} else {
  if (name !== undefined) console.error(`example: no example is named ${name}\n`)
  console.log('npm run example <name>\n')
  for (const one of readdirSync(import.meta.dirname)) {
    if (!one.endsWith('.ts') || one.endsWith('.test.ts') || one === 'main.ts') continue
    const text = readFileSync(resolve(import.meta.dirname, one), 'utf8')
    const about = /^\/\*\*\s*\n \* (.*?)(?:[.:]\s|[.:]$)/m.exec(text)?.[1] ?? ''
    console.log(`  ${one.slice(0, -3).padEnd(20)} ${about}`)
  }
  process.exitCode = name === undefined ? 0 : 2
}
