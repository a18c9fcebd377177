import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const example = fileURLToPath(new URL('./server.ts', import.meta.url))

test('the server answers long and short requests on piscina, on heddle/piscina and with priorities', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [example, '6'])
  const rows = stdout.split('\n').filter(line => line.includes('/s  '))
  expect(rows).toHaveLength(3)
  for (const row of rows) expect(row).toMatch(/^ +[\d.]+ ms +[\d.]+ ms +[\d.]+\/s {3}/)
  expect(rows[0]).toContain("import Piscina from 'piscina'")
  expect(rows[1]).toContain("import Piscina from 'heddle/piscina'")
  expect(rows[2]).toContain("priority: 'high'")
})
