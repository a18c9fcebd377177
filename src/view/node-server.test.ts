import { readdirSync, readFileSync } from 'node:fs'
import { request } from 'node:http'
import { connect } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { FrameReader } from './frames.ts'
import { pageScript } from './node-bundle.ts'
import { serveView, type ViewServer } from './node-server.ts'
import type { ViewMessage, ViewRequest, ViewSource } from './source.ts'

const asked: ViewRequest[] = []
const hello: ViewMessage = {
  kind: 'hello',
  about: { title: '<b>x</b>', cpus: 1, live: false, control: false, panels: ['timeline'] },
}
const source: ViewSource = {
  open(listen) {
    listen(hello)
    return () => undefined
  },
  async ask(wanted) {
    asked.push(wanted)
    return { ok: true, done: true }
  },
}

let server: ViewServer
let port: number
let token: string
beforeAll(async () => {
  server = await serveView(source)
  const url = new URL(server.url)
  port = Number(url.port)
  token = url.searchParams.get('token')!
})
afterAll(() => server.close())

interface Answer {
  readonly status: number
  readonly headers: Record<string, unknown>
  readonly body: Buffer
}

/** `until`: how much of the body to wait for; a stream never ends. */
function get(
  path: string,
  { method = 'GET', body = '', ...headers }: Record<string, string> = {},
  until = Infinity,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path, method, headers, agent: false }, response => {
      const pieces: Buffer[] = []
      const done = (): void => {
        resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(pieces) })
        sent.destroy()
      }
      response.on('data', (piece: Buffer) => {
        pieces.push(piece)
        if (Buffer.concat(pieces).length >= until) done()
      })
      response.on('end', done)
      response.on('close', done)
    })
    sent.on('error', reject)
    sent.on('close', () => reject(new Error('the connection was closed')))
    sent.end(body)
  })
}

const bearer = (): Record<string, string> => ({ Authorization: `Bearer ${token}` })

describe('the server of the view', () => {
  test('serves the page, its script and its data with the token', async () => {
    const page = await get(`/?token=${token}`)
    expect(page.status).toBe(200)
    expect(page.body.toString()).toContain('start.js')
    expect((await get(`/page.js?token=${token}`)).status).toBe(200)
    const stream = await get('/stream', bearer(), 20)
    expect(stream.status).toBe(200)
    const messages: ViewMessage[] = []
    new FrameReader().push(stream.body, message => messages.push(message))
    expect(messages).toEqual([hello])
    const reply = await get('/ask', { ...bearer(), method: 'POST', body: '{"op":"kill","task":3}' })
    expect(JSON.parse(reply.body.toString())).toEqual({ ok: true, done: true })
    expect(asked.at(-1)).toEqual({ op: 'kill', task: 3 })
  })

  const paths = ['/', '/start.js', '/page.js', '/stream', '/ask']

  test.each(paths)('refuses %s without the token, with a wrong one, and with a part of it', async path => {
    const method = path === '/ask' ? 'POST' : 'GET'
    for (const given of ['', 'x', token.slice(1), `${token}x`, token.toLowerCase()]) {
      const answer = await get(`${path}?token=${given}`, { method, Authorization: `Bearer ${given}` })
      expect(answer.status, given).toBe(403)
      expect(answer.body.toString()).not.toContain(token)
    }
  })

  test.each(['/stream', '/ask'])(
    'takes the token of %s from the header alone: a form cannot set it',
    async path => {
      const method = path === '/ask' ? 'POST' : 'GET'
      const answer = await get(`${path}?token=${token}`, { method })
      expect(answer.status).toBe(403)
    },
  )

  test.each(paths)('refuses %s under another Host, though the token is right', async path => {
    const method = path === '/ask' ? 'POST' : 'GET'
    for (const Host of [
      'evil.example',
      `evil.example:${port}`,
      `127.0.0.1.evil.example:${port}`,
      '127.0.0.1',
    ]) {
      const answer = await get(`${path}?token=${token}`, { ...bearer(), method, Host })
      expect(answer.status, Host).not.toBe(200)
    }
  })

  test.each(paths)('refuses %s for another Origin', async path => {
    const method = path === '/ask' ? 'POST' : 'GET'
    for (const Origin of [
      'http://evil.example',
      'null',
      `http://localhost:${port + 1}`,
      `https://127.0.0.1:${port}`,
    ]) {
      const answer = await get(`${path}?token=${token}`, { ...bearer(), method, Origin })
      expect(answer.status, Origin).toBe(403)
    }
  })

  test('refuses a request that the browser marks as that of another site', async () => {
    const before = asked.length
    const from = { ...bearer(), 'Sec-Fetch-Site': 'cross-site' }
    expect((await get('/ask', { ...from, method: 'POST', body: '{"op":"kill","task":1}' })).status).toBe(403)
    expect((await get('/stream', from)).status).toBe(403)
    expect(asked.length).toBe(before)
  })

  test('refuses other methods, and a WebSocket', async () => {
    expect((await get('/ask', { ...bearer(), method: 'GET' })).status).toBe(403)
    expect((await get('/stream', { ...bearer(), method: 'POST' })).status).toBe(403)
    const upgraded = await new Promise<string>(resolve => {
      const socket = connect(port, '127.0.0.1', () =>
        socket.write(
          `GET /stream HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
        ),
      )
      socket.once('data', data => {
        resolve(data.toString().split('\r\n')[0])
        socket.destroy()
      })
    })
    expect(upgraded).toBe('HTTP/1.1 403 Forbidden')
  })

  test('answers a request that is not JSON, or far too long, with an error, and lives on', async () => {
    const bad = await get('/ask', { ...bearer(), method: 'POST', body: '{' })
    expect(bad.status).toBe(400)
    const long = await get('/ask', { ...bearer(), method: 'POST', body: 'x'.repeat(2 << 20) }).catch(
      () => null,
    )
    expect(long === null || long.status === 400).toBe(true)
    expect((await get(`/?token=${token}`)).status).toBe(200)
  })

  test('every answer forbids other scripts, frames, referrers and guesses of its type', async () => {
    for (const answer of [await get(`/?token=${token}`), await get('/')]) {
      const { headers } = answer
      expect(headers['content-security-policy']).toMatch(/default-src 'none'; script-src 'self'/)
      expect(headers['content-security-policy']).toMatch(/frame-ancestors 'none'/)
      expect(headers['content-security-policy']).not.toContain('unsafe')
      expect(headers['x-content-type-options']).toBe('nosniff')
      expect(headers['referrer-policy']).toBe('no-referrer')
      expect(headers['cross-origin-resource-policy']).toBe('same-origin')
      expect(headers['access-control-allow-origin']).toBeUndefined()
    }
  })

  test('listens on the loopback address alone, and each server has its own token', async () => {
    const other = await serveView(source)
    expect(new URL(server.url).hostname).toBe('127.0.0.1')
    expect(new URL(other.url).searchParams.get('token')).not.toBe(token)
    await other.close()
  })
})

test('the page is one script of less than 150 kB compressed, which fetches nothing from elsewhere', async () => {
  const script = await pageScript()
  expect(gzipSync(script).length).toBeLessThan(150_000)
  expect(script).not.toMatch(/https?:\/\/(?!www\.w3\.org\/|127\.0\.0\.1|localhost)[a-z]/)
})

test('nothing that a program names becomes HTML: the page sets text alone', () => {
  const folder = new URL('../../view/', import.meta.url)
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(file =>
    /\.tsx?$/.test(file),
  )
  expect(files.length).toBeGreaterThan(20)
  for (const file of files) {
    const text = readFileSync(new URL(file, folder), 'utf8')
    expect(text, file).not.toMatch(
      /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function/i,
    )
  }
})
