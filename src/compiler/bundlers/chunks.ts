/**
 * Module references for Rollup, Rolldown and Vite, whose chunks have addresses. A module that is named by URL
 * becomes a chunk of the same build. So do heddle's own workers: then CPUs share the instance of heddle that
 * the modules of tasks import.
 */
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { UnpluginOptions } from 'unplugin'
import { MagicString } from 'magic-string'
import { moduleReferences, referenceText } from './references.ts'
import { isLoader, ownModule, pathOf } from './ownmodules.ts'

/** The common hooks of the three that unplugin does not declare. */
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
 * The file that a reference means. It asks the bundler only if no such file exists (`./work.js` for
 * `work.ts`), because the answer may have to wait until this very module is transformed.
 */
async function fileOf(context: ChunkContext, specifier: string, id: string): Promise<string | null> {
  const file = join(dirname(pathOf(id)), specifier)
  if (existsSync(file)) return file.replaceAll('\\', '/')
  const resolved = await context.resolve(specifier, id)
  return resolved === null || resolved.external ? null : resolved.id
}

export function chunks(): UnpluginOptions {
  const emitted = new Set<string>()
  /** Vite's own URL would be relative to the page. */
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
            // Its exports are the functions that tasks run: none may be removed or added.
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
