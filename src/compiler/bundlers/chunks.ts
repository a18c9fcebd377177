/**
 * Module references where chunks have addresses: Rollup, Rolldown and Vite. A module that is named by URL
 * becomes a chunk of the same build. So do the workers of heddle itself: CPUs then have the very instance of
 * heddle that the modules of tasks import.
 */
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { UnpluginOptions } from 'unplugin'
import { MagicString } from 'magic-string'
import { moduleReferences, referenceText } from './references.ts'
import { isLoader, ownModule, pathOf } from './ownmodules.ts'

/** What the hooks of the three have in common, and unplugin does not name. */
interface ChunkContext {
  resolve(source: string, importer: string): Promise<{ id: string; external?: unknown } | null>
  emitFile(file: { type: 'chunk'; id: string; name: string; preserveSignature: 'strict' }): string
}

interface FileUrl {
  readonly referenceId?: string | null
  readonly relativePath: string
  readonly format: string
}

/**
 * The file that a reference means. Asks the bundler only where there is none of the name (`./work.js` for
 * `work.ts`): its answer may have to wait until this very module has been transformed.
 */
async function fileOf(context: ChunkContext, specifier: string, id: string): Promise<string | null> {
  const file = join(dirname(pathOf(id)), specifier)
  if (existsSync(file)) return file.replaceAll('\\', '/')
  const resolved = await context.resolve(specifier, id)
  return resolved === null || resolved.external ? null : resolved.id
}

export function chunks(): UnpluginOptions {
  const emitted = new Set<string>()
  /** Vite would have it relative to the page. */
  const resolveFileUrl = ({ referenceId, relativePath, format }: FileUrl): string | null =>
    format === 'es' && typeof referenceId === 'string' && emitted.has(referenceId)
      ? `new URL(${JSON.stringify(relativePath)}, import.meta.url).href`
      : null
  return {
    name: 'heddle:modules',
    enforce: 'pre',
    vite: { apply: 'build', resolveFileUrl },
    transform: {
      filter: { id: /\.[cm]?[jt]sx?(?:$|\?)/, code: referenceText },
      async handler(source, id) {
        const own = ownModule(id)
        const references = moduleReferences(source, pathOf(id), own !== null)
        if (references.length === 0) return null
        const context = this as unknown as ChunkContext
        const text = new MagicString(source)
        for (const { start, end, specifier } of references) {
          if (own !== null && isLoader(specifier)) {
            text.update(start, end, 'null')
            continue
          }
          const target = await fileOf(context, specifier, id)
          if (target === null) continue
          const base = specifier.replace(/^.*\/|\.\w+$/g, '')
          const reference = context.emitFile({
            type: 'chunk',
            id: target,
            name: own === null ? base : `heddle-${base}`,
            // Its exports are the functions that tasks run: none is left out, none is added.
            preserveSignature: 'strict',
          })
          emitted.add(reference)
          text.update(start, end, `new URL(import.meta.ROLLUP_FILE_URL_${reference})`)
        }
        return { code: text.toString(), map: text.generateMap({ source: id, hires: 'boundary' }) as never }
      },
    },
  }
}
