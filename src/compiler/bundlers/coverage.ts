/**
 * Coverage of compiled modules in vitest. In compiled text a function appears twice, so the source is
 * counted: counters are inserted into it before the compiler runs. Istanbul inserts its own counters. For
 * V8's coverage, blockcounters.ts inserts counters, and v8provider.ts passes their counts to the provider. A
 * warning names a provider that does not support this.
 */
import type { UnpluginOptions } from 'unplugin'
import { composeMaps, type SourceMap } from '../output/sourcemap.ts'
import { textHash } from '../loading/texthash.ts'
import type { WarningContext, Translate, CompilerPosition } from './unplugin.ts'
import { countBlocks } from './blockcounters.ts'
import { markOf, type Originals, originalsOf } from './v8provider.ts'

interface VitestConfig {
  readonly root: string
  readonly test?: { readonly coverage?: { readonly enabled?: boolean; readonly provider?: string } }
  readonly logger: { warn(message: string): void }
}

/** The part of Vite's transform context that other bundlers lack. */
interface ViteContext extends WarningContext {
  getCombinedSourcemap(): SourceMap
}

export function coverage(turn: CompilerPosition, translate: Translate): UnpluginOptions {
  let originals: Originals | null = null
  return {
    name: 'heddle:coverage',
    vite: {
      enforce: 'post',
      async configResolved(config) {
        const { root, test, logger } = config as unknown as VitestConfig
        const { enabled = false, provider = 'v8' } = test?.coverage ?? {}
        originals = enabled && provider === 'v8' ? await originalsOf(root) : null
        turn.afterCounters = originals !== null || (enabled && provider === 'istanbul')
        if (!enabled || provider !== 'v8' || originals !== null) return
        logger.warn(
          "heddle: the coverage of compiled modules is wrong with this version of provider 'v8', which counts the compiled text; " +
            "use @vitest/coverage-v8 of vitest 4 or 5, or set test.coverage.provider to 'istanbul'",
        )
      },
      transform: {
        // After vitest's own plugin, which inserts the counters.
        order: 'post',
        handler(source, id) {
          if (!turn.afterCounters || /\0/.test(id) || !/\.[cm]?[jt]sx?(?:$|\?)/.test(id)) return null
          const teller = this as unknown as ViteContext
          return originals === null
            ? translate(teller, source, id)
            : translateCounted(teller, source, id, translate, originals)
        },
      },
    },
  }
}

/** Compiles a module with counters for V8, and stores its original in `originals`. */
function translateCounted(
  teller: ViteContext,
  source: string,
  id: string,
  translate: Translate,
  originals: Originals,
): ReturnType<Translate> {
  const counted = countBlocks(source, id)
  if (counted === null) return translate(teller, source, id)
  const made = translate(teller, counted.code, id)
  if (made === null) return null
  const key = textHash(`${id}\n${source}`)
  const { prefix, blocks } = counted
  originals.set(key, { code: source, map: teller.getCombinedSourcemap(), prefix, blocks })
  return { code: `${made.code}\n${markOf(key)}`, map: composeMaps(made.map, counted.map) as never }
}
