/**
 * Coverage of compiled modules in vitest. Istanbul's counters are put into the source, and the compiler then runs behind them: the
 * counters go where the statements go, and what they count is the source. V8 counts the text that runs, in which a function
 * stands twice: what comes of that is wrong, and one warning says so.
 */
import type { UnpluginOptions } from 'unplugin'
import type { Teller, Translate, Turn } from '../unplugin.ts'

interface VitestConfig {
  readonly test?: { readonly coverage?: { readonly enabled?: boolean; readonly provider?: string } }
  readonly logger: { warn(message: string): void }
}

export function coverage(turn: Turn, translate: Translate): UnpluginOptions {
  return {
    name: 'heddle:coverage',
    vite: {
      enforce: 'post',
      configResolved(config) {
        const { test, logger } = config as unknown as VitestConfig
        const { enabled = false, provider = 'v8' } = test?.coverage ?? {}
        turn.afterCounters = enabled && provider === 'istanbul'
        if (!enabled || provider !== 'v8') return
        logger.warn(
          "heddle: the coverage of modules that are compiled is wrong with provider 'v8', which counts the compiled text; set test.coverage.provider to 'istanbul'",
        )
      },
      transform: {
        // Behind vitest's own, which gives the code its counters.
        order: 'post',
        handler(source, id) {
          if (!turn.afterCounters || /\0/.test(id) || !/\.[cm]?[jt]sx?(?:$|\?)/.test(id)) return null
          return translate(this as unknown as Teller, source, id)
        },
      },
    },
  }
}
