/** One plugin for every bundler: each entry (`heddle/vite`, `heddle/rollup`, …) is this one, in that bundler's shape. */
import { fileURLToPath } from 'node:url'
import { createUnplugin, type UnpluginInstance, type UnpluginOptions } from 'unplugin'
import { compile, type Diagnostic } from './compile.ts'

export interface HeddleOptions {
  /** The module that compiled code imports its runtime from. Default: heddle's own. */
  runtime?: string
  /** False leaves out the warnings about what stays plain. Default: true. */
  warnings?: boolean
}

/**
 * By name in a build, so that the bundler resolves it to the very instance that the program's own `import 'heddle'`
 * gets: the two share the safepoint flag.
 */
const ownRuntime: string = import.meta.url.endsWith('.ts')
  ? fileURLToPath(new URL('./runtime.ts', import.meta.url))
  : 'heddle/runtime'

function plugin({ runtime = ownRuntime, warnings = true }: HeddleOptions = {}): UnpluginOptions {
  return {
    name: 'heddle',
    // Before the bundler strips the types: diagnostics and maps then speak of what was written.
    enforce: 'pre',
    transform: {
      filter: { id: /\.[cm]?[jt]sx?(?:$|\?)/, code: 'use task' },
      handler(source, id) {
        const file = id.replace(/[?#].*$/, '')
        const { code, map, changed, diagnostics } = compile(source, file, { runtime })
        for (const diagnostic of diagnostics) {
          if (diagnostic.severity === 'error') this.error(messageOf(diagnostic))
          else if (warnings) this.warn(messageOf(diagnostic))
        }
        return changed ? { code, map: map as never } : null
      },
    },
  }
}

function messageOf({ message, file, line, column, frame }: Diagnostic): {
  message: string
  id: string
  loc: Location
} {
  return {
    message: `${message}\n${file}:${line}:${column}\n${frame}`,
    id: file,
    loc: { file, line, column: column - 1 },
  }
}

interface Location {
  file: string
  line: number
  column: number
}

export const heddle: UnpluginInstance<HeddleOptions | undefined, false> = createUnplugin(plugin)
