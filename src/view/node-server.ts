import { randomBytes, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { encodeFrame } from './frames.ts'
import { pageScript } from './node-bundle.ts'
import type { ViewMessage, ViewRequest, ViewSource } from './source.ts'

/**
 * Serves the view of one source on the loopback address. Other users of the machine and other pages of the
 * same browser can reach the port, so each request must pass all of these:
 *
 *   [1] Host is the loopback address with our port: a name that an attacker points at 127.0.0.1 is refused
 *   [2] Origin, where the browser sends it, is our own page; Sec-Fetch-Site is not another site's
 *   [3] the token: in the query for the page and its script, in the header Authorization for data. A form, an
 *       image or a script of another page cannot set that header
 *   [4] the method is the expected one
 *
 * The page runs under a content security policy that allows its own script and connection, and nothing else.
 */
export interface ViewServer {
  /** The address with the token. */
  readonly url: string
  /** How many pages are open. */
  readonly pages: number
  close(): Promise<void>
}

export interface ServerOptions {
  /** 0: any free port. */
  readonly port?: number
}

const LOOPBACK = '127.0.0.1'
const TOKEN_BYTES = 24
/** A request of the page is much shorter. */
const BODY_MAX = 1 << 20
/** A page that reads more slowly than this much piles up is cut off: its memory would grow in our process. */
const BACKLOG_MAX = 256 << 20

/** How long open pages have to read their last message. */
const CLOSE_MS = 500

const ENDED: ViewMessage = { kind: 'ended', why: 'the command that serves this page has ended' }

const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "connect-src 'self'",
  "style-src 'none'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ')

const headers: Readonly<Record<string, string>> = {
  'Content-Security-Policy': policy,
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-store',
}

export async function serveView(source: ViewSource, options: ServerOptions = {}): Promise<ViewServer> {
  const token = randomBytes(TOKEN_BYTES).toString('base64url')
  const viewing = new Viewing(source, token, await pageScript())
  const server = createServer((request, response) => viewing.handle(request, response))
  await new Promise<void>((listening, failed) => {
    server.once('error', failed)
    server.listen(options.port ?? 0, LOOPBACK, listening)
  })
  const { port } = server.address() as AddressInfo
  viewing.port = port
  return {
    url: `http://${LOOPBACK}:${port}/?token=${token}`,
    get pages() {
      return viewing.pages
    },
    close() {
      viewing.end()
      return closeServer(server)
    },
  }
}

function closeServer(server: Server): Promise<void> {
  return new Promise(closed => {
    server.close(() => closed())
    server.closeIdleConnections()
    // A page that does not read its last message is cut off.
    setTimeout(() => server.closeAllConnections(), CLOSE_MS).unref()
  })
}

class Viewing {
  private readonly source: ViewSource
  private readonly token: Buffer
  private readonly script: string
  private readonly tokenText: string
  private readonly streams = new Set<ServerResponse>()
  port = 0

  constructor(source: ViewSource, token: string, script: string) {
    this.source = source
    this.token = Buffer.from(token)
    this.tokenText = token
    this.script = script
  }

  get pages(): number {
    return this.streams.size
  }

  /** Tells the open pages that nothing follows. */
  end(): void {
    for (const stream of this.streams) {
      for (const piece of encodeFrame(ENDED)) stream.write(piece)
      stream.end()
    }
  }

  handle(request: IncomingMessage, response: ServerResponse): void {
    for (const name in headers) response.setHeader(name, headers[name])
    const url = new URL(request.url ?? '/', `http://${LOOPBACK}`)
    const why = this.refusal(request, url)
    if (why !== null) {
      response.statusCode = 403
      response.setHeader('Content-Type', 'text/plain; charset=utf-8')
      response.end(`heddle view: ${why}\n`)
      return
    }
    if (url.pathname === '/') send(response, 'text/html', page(this.tokenText))
    else if (url.pathname === '/start.js') send(response, 'text/javascript', start(this.tokenText))
    else if (url.pathname === '/page.js') send(response, 'text/javascript', this.script)
    else if (url.pathname === '/stream') this.stream(response)
    else if (url.pathname === '/ask') void this.ask(request, response)
    else {
      response.statusCode = 404
      response.end()
    }
  }

  /** Why the request is refused, or null. */
  private refusal(request: IncomingMessage, url: URL): string | null {
    const { host, origin, authorization, 'sec-fetch-site': site } = request.headers
    const names = [`${LOOPBACK}:${this.port}`, `localhost:${this.port}`]
    if (host === undefined || !names.includes(host)) return 'the Host is not the loopback address' // [1]
    const isData = url.pathname === '/stream' || url.pathname === '/ask'
    if (origin !== undefined && origin !== `http://${host}`) return 'another page asks' // [2]
    if (isData && site !== undefined && site !== 'same-origin') return 'another site asks' // [2]
    const given = isData ? /^Bearer (.+)$/.exec(authorization ?? '')?.[1] : url.searchParams.get('token')
    if (!this.isToken(given ?? '')) return 'open the address that the command printed: it has a token' // [3]
    const method = url.pathname === '/ask' ? 'POST' : 'GET'
    return request.method === method ? null : `this address is for ${method}` // [4]
  }

  private isToken(given: string): boolean {
    const bytes = Buffer.from(given)
    return bytes.length === this.token.length && timingSafeEqual(bytes, this.token)
  }

  private stream(response: ServerResponse): void {
    response.setHeader('Content-Type', 'application/octet-stream')
    response.flushHeaders()
    this.streams.add(response)
    const close = this.source.open((message: ViewMessage) => {
      for (const piece of encodeFrame(message)) response.write(piece)
      if (response.writableLength > BACKLOG_MAX) response.destroy()
    })
    response.on('error', () => response.destroy())
    response.once('close', () => {
      this.streams.delete(response)
      close()
    })
  }

  private async ask(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = ''
    try {
      for await (const piece of request.setEncoding('utf8')) {
        body += piece as string
        if (body.length > BODY_MAX) throw new Error('the request is too long')
      }
      const reply = await this.source.ask(JSON.parse(body) as ViewRequest)
      send(response, 'application/json', JSON.stringify(reply))
    } catch (error) {
      response.statusCode = 400
      send(response, 'application/json', JSON.stringify({ ok: false, error: (error as Error).message }))
    }
  }
}

function send(response: ServerResponse, type: string, text: string): void {
  response.setHeader('Content-Type', `${type}; charset=utf-8`)
  response.end(text)
}

function page(token: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>heddle view</title>
<script type="module" src="/start.js?token=${token}"></script>
</head>
<body><noscript>The view needs JavaScript.</noscript></body>
</html>
`
}

function start(token: string): string {
  return `import { openServed } from '/page.js?token=${token}'\nopenServed('${token}')\n`
}
