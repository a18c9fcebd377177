/**
 * Settings that every Vite project would need. heddle is served file by file, because its workers name their
 * modules by URL. The development server and the preview send the headers that shared memory needs. A chunk
 * that a worker loads does not use `document`.
 */
import type { UnpluginOptions } from 'unplugin'

/** Headers that make a page cross-origin isolated, so that it has shared memory. */
const isolationHeaders: Readonly<Record<string, string>> = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
}

interface Headers {
  readonly headers?: Readonly<Record<string, unknown>>
}

interface ViteConfig {
  readonly server?: Headers
  readonly preview?: Headers
}

/** `isolate`: whether to send the headers. The project's own settings have precedence. */
export function viteSettings(isolate: boolean): UnpluginOptions {
  return {
    name: 'heddle:vite',
    enforce: 'pre',
    vite: {
      config: ((config: ViteConfig) => ({
        optimizeDeps: { exclude: ['heddle'] },
        worker: { format: 'es' },
        ...(isolate && {
          server: { headers: missingHeaders(config.server) },
          preview: { headers: missingHeaders(config.preview) },
        }),
      })) as never,
    },
    transform: {
      filter: { id: /vite\/preload-helper/ },
      handler(source) {
        const links = 'deps && deps.length > 0'
        const code = source.replace(links, `typeof document !== "undefined" && ${links}`)
        return code === source ? null : { code, map: null }
      },
    },
  }
}

function missingHeaders(own: Headers | undefined): Record<string, string> {
  const set = Object.keys(own?.headers ?? {}).map(name => name.toLowerCase())
  // A page is isolated by the policy or by the two headers, never by both.
  if (set.includes('document-isolation-policy')) return {}
  return Object.fromEntries(
    Object.entries(isolationHeaders).filter(([name]) => !set.includes(name.toLowerCase())),
  )
}
