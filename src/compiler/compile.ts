/** The compiler's one entry: source text in; source text, a map and what there is to say about it out. */
import { type Analysis, analyze } from './analyze.ts'
import { classify, hasWork } from './classify.ts'
import { Lines, Reporter } from './diagnostics.ts'
import { CheckerLowering } from './lowering/checker.ts'
import { GeneratorLowering } from './lowering/generator.ts'
import { parse } from './parse.ts'
import { print } from './rope.ts'

export interface CompileOptions {
  /** 'task' makes marked functions preemptible; 'checker' makes every function and shared access visible. */
  mode?: 'task' | 'checker'
  /** The module that the output imports its runtime from. */
  runtime?: string
  /** False leaves the map out. */
  sourcemap?: boolean
  /** How many turns of a loop without calls stand between two looks at the safepoint: 512. Tests make it small. */
  strip?: number
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
  const lines = new Lines(source)
  const reporter = new Reporter(file, lines)
  const checking = options.mode === 'checker'
  const unchanged = (stats: FunctionStat[] = []): CompileResult => ({
    code: source,
    map: null,
    changed: false,
    diagnostics: reporter.sorted(),
    stats,
  })
  if (!checking && !source.includes('use task')) return unchanged()
  try {
    const parsed = parse(source, file, reporter)
    if (parsed === null) return unchanged()
    const analysis = analyze(parsed.program, parsed.isModule)
    classify(analysis, reporter, { everything: checking })
    const stats = statistics(analysis, lines)
    if (!hasWork(analysis)) return unchanged(stats)
    const lowering = checking
      ? new CheckerLowering(source, analysis, file)
      : new GeneratorLowering(source, analysis, { strip: options.strip ?? 512 })
    const output = lowering.program(
      options.runtime ?? (checking ? 'heddle/checker/runtime' : 'heddle/runtime'),
    )
    const { code, map } = print(output, source, file, options.sourcemap !== false)
    return { code, map, changed: true, diagnostics: reporter.sorted(), stats }
  } catch (error) {
    const message = `the compiler failed, and left the file as it is: ${String((error as Error)?.stack ?? error)}`
    reporter.warn('internal', message, { start: 0, end: 0 })
    return unchanged()
  }
}

function statistics({ funcs }: Analysis, lines: Lines): FunctionStat[] {
  const stats: FunctionStat[] = []
  for (const { name, node, kind, twin, why } of funcs) {
    if (kind === 'module' || kind === 'initializer') continue
    stats.push({ name, line: lines.at(node.start).line, form: twin ? 'twin' : 'plain', why })
  }
  return stats
}
