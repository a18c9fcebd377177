import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const example = fileURLToPath(new URL('./responsive-server.ts', import.meta.url))

test('shows the slowest answer for each way to compute, and ends', async () => {
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [example])
  expect(stderr).toBe('')
  const rows = [...stdout.matchAll(/^ {2}(.+?) +took +\d+ ms +(\d+) answers, the slowest after +\d+ ms$/gm)]
  expect(rows.map(([, how]) => how)).toEqual(['not at all', 'called plainly', 'schedule.run'])
  for (const [, , answers] of rows) expect(Number(answers)).toBeGreaterThan(0)
})

test('answers other clients while it computes for one, and stops when that client disconnects', async () => {
  const server = spawn(process.execPath, [example, '--serve'], { env: { ...process.env, PORT: '0' } })
  try {
    let said = ''
    server.stdout.setEncoding('utf8')
    while (!said.includes('serving on')) said += String((await once(server.stdout, 'data'))[0])
    const [address] = /http:\/\/localhost:\d+/.exec(said)!
    const order: string[] = []
    const long = fetch(`${address}/primes?below=2000000`).then(async response => {
      order.push(await response.text())
    })
    for (let i = 0; i < 5; i++) order.push(await (await fetch(address)).text())
    await long
    expect(order).toEqual([...Array.from({ length: 5 }, () => 'hello\n'), '148933 primes below 2000000\n'])
    // Without a cancel these would compute for hours, and delay the next count.
    const gone = new AbortController()
    const left = Array.from({ length: 3 }, () =>
      fetch(`${address}/primes?below=1e12`, { signal: gone.signal }).catch((error: Error) => error.name),
    )
    expect(await (await fetch(address)).text()).toBe('hello\n')
    gone.abort()
    expect(await Promise.all(left)).toEqual(['AbortError', 'AbortError', 'AbortError'])
    expect(await (await fetch(`${address}/primes?below=100`)).text()).toBe('25 primes below 100\n')
  } finally {
    server.kill()
  }
})
