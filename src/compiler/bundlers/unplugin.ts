/**
 * The plugin for every bundler: each entry (`heddle/vite`, `heddle/rollup`, …) is this plugin in that
 * bundler's shape.
 */
import { fileURLToPath } from 'node:url'
import {
  createUnplugin,
  type UnpluginContextMeta,
  type UnpluginInstance,
  type UnpluginOptions,
} from 'unplugin'
import { checkOptions, type Kinds } from '../../coroutine/core/knownoptions.ts'
import { chunks } from './chunks.ts'
import { coverage } from './coverage.ts'
import { companion } from './companion.ts'
import type { HeddleOptions } from './options.ts'
import { registry } from './registry.ts'
import { vitestCache } from './vitestcache.ts'
import { viteSettings } from './vitesettings.ts'
import { compile, type Diagnostic } from '../compile.ts'
import { moduleKey } from '../loading/modulekey.ts'
import { importedCostsOf } from '../loading/neighbours.ts'
import { selectionWarning } from '../loading/selectionwarning.ts'
import { checkPatterns, type CompilePattern, patternText, Selection } from '../loading/selection.ts'
import { withoutQuery } from '../analysis/parse.ts'

/**
 * By name in a build, so that the bundler resolves it to the instance that the program's own
 * `import 'heddle'` uses: both must share the safepoint flag.
 */
const ownRuntime: string = import.meta.url.endsWith('.ts')
  ? fileURLToPath(new URL('../runtime.ts', import.meta.url))
  : 'heddle/runtime'

const heddleOptions: Kinds<HeddleOptions> = {
  runtime: 'string',
  warnings: 'boolean',
  include: 'checked',
  exclude: 'checked',
  isolate: 'boolean',
}

const ids = /\.[cm]?[jt]sx?(?:$|\?)/

/**
 * The position of the compiler in the chain of plugins. Vitest's coverage changes it: see
 * bundlers/coverage.ts.
 */
export interface CompilerPosition {
  /** True: after the counters are inserted, so that the source is counted. */
  afterCounters: boolean
}

function plugin(
  options: HeddleOptions = {},
  turn: CompilerPosition = { afterCounters: false },
): UnpluginOptions {
  checkOptions('heddle(options)', options, heddleOptions)
  const selection = selectionOf(options)
  const translate = translator(options, selection)
  return {
    name: 'heddle',
    // Before the bundler strips the types, so that diagnostics and maps refer to the source.
    enforce: 'pre',
    transform: {
      filter: selection.isEmpty ? { id: ids, code: 'use task' } : { id: { include: ids, exclude: /\0/ } },
      handler(source, id) {
        return turn.afterCounters ? null : translate(this, source, id)
      },
    },
  }
}

/** The part of a bundler's context that reports warnings. */
export interface WarningContext {
  warn(message: string | object): void
  error(message: string | object): void
}

export type Translate = (
  teller: WarningContext,
  source: string,
  id: string,
) => { code: string; map: never } | null

function translator(options: HeddleOptions, selection: Selection): Translate {
  const { runtime = ownRuntime, warnings = true } = options
  return (teller, source, id) => {
    const file = withoutQuery(id)
    const whole = selection.includes(file)
    if (!whole && !source.includes('use task')) return null
    if (!whole && selection.excludes(file)) {
      if (warnings) teller.warn(`${file} contains 'use task' and is not compiled: \`exclude\` excludes it`)
      return null
    }
    const { code, map, changed, diagnostics } = compile(source, file, {
      runtime,
      whole,
      neighbour: importedCostsOf(file),
      ...(source.includes('use task movable') && { key: moduleKey(file) }),
    })
    if (whole) {
      const text = selectionWarning(diagnostics, file)
      if (warnings && text !== null) teller.warn(text)
    } else {
      for (const diagnostic of diagnostics) {
        if (diagnostic.severity === 'error') teller.error(messageOf(diagnostic))
        else if (warnings) teller.warn(messageOf(diagnostic))
      }
    }
    return changed ? { code, map: map as never } : null
  }
}

function selectionOf({ include = [], exclude = [] }: HeddleOptions): Selection {
  const included = include === 'all' ? ['all'] : include
  checkPatterns('include', included)
  checkPatterns('exclude', exclude)
  const selection = new Selection()
  const text = (pattern: CompilePattern): string => patternText(pattern, process.cwd())
  selection.add([...included.map(text), ...exclude.map(pattern => `!${text(pattern)}`)])
  return selection
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

/** The plugins behind one `heddle()`: module references, 'use task', and Vite's settings. */
function plugins(
  options: HeddleOptions | undefined,
  { framework }: Pick<UnpluginContextMeta, 'framework'>,
): UnpluginOptions[] {
  const turn: CompilerPosition = { afterCounters: false }
  const tasks = plugin(options, turn)
  const selection = selectionOf(options ?? {})
  switch (framework) {
    case 'vite':
      return [
        viteSettings(options?.isolate ?? true),
        chunks(),
        tasks,
        coverage(turn, translator(options ?? {}, selection)),
        vitestCache(selection),
      ]
    case 'rollup':
    case 'rolldown':
      return [chunks(), tasks]
    case 'webpack':
    case 'rspack':
      return [registry(framework), tasks]
    case 'esbuild':
      return [companion(), tasks]
    default:
      return [tasks]
  }
}

export const heddle: UnpluginInstance<HeddleOptions | undefined, true> = createUnplugin(plugins)
