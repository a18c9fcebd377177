/** The compiler's one entry: source text in; source text, a map and what there is to say about it out. */

export interface CompileOptions {
  /** 'task' makes marked functions preemptible; 'checker' makes every function and shared access visible. */
  mode?: 'task' | 'checker'
  /** The module that the output imports its runtime from. */
  runtime?: string
  /** False leaves the map out. */
  sourcemap?: boolean
}

export interface Diagnostic {
  severity: 'error' | 'warning'
  message: string
  file: string
  /** From 1. */
  line: number
  /** From 1. */
  column: number
  /** The lines around, with a caret. */
  frame: string
  /** A short stable name of the kind of problem. */
  code: string
}

export interface FunctionStat {
  name: string
  line: number
  form: 'twin' | 'plain'
  why: string
}

export interface CompileResult {
  code: string
  map: object | null
  changed: boolean
  diagnostics: Diagnostic[]
  stats: FunctionStat[]
}

/** Compiles one module. Never throws: what cannot be compiled comes back unchanged, with a diagnostic. */
export function compile(source: string, file: string, options: CompileOptions = {}): CompileResult {
  void file
  void options
  return { code: source, map: null, changed: false, diagnostics: [], stats: [] }
}
