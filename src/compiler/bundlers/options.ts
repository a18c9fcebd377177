import type { CompilePattern } from '../loading/selection.ts'

/** The options of the plugin for every bundler. */
export interface HeddleOptions {
  /** The module from which compiled code imports its runtime. Default: heddle's own. */
  runtime?: string
  /** False disables warnings about code that stays plain. Default: true. */
  warnings?: boolean
  /**
   * Modules to compile although they do not contain 'use task': package names (`'jpeg-js'`, `'@acme/*'`),
   * regular expressions for `package/path/in/it.js`, paths of files and folders, or `'all'`.
   */
  include?: readonly CompilePattern[] | 'all'
  /** Modules that are never compiled, even if `include` or a directive selects them. */
  exclude?: readonly CompilePattern[]
  /** Vite's server and preview send the headers that enable shared memory in a page. Default: true. */
  isolate?: boolean
}
