/** The compiler's one entry: source text in; source text, a map and what there is to say about it out. */
import { type Analysis, analyze } from './analyze.ts'
import { classify } from './classify.ts'
import { Lines, Reporter } from './diagnostics.ts'
import { CheckerLowering } from './lowering/checker.ts'
import { FramesLowering } from './lowering/frames.ts'
import { GeneratorLowering } from './lowering/generator.ts'
import { isTooDeep, type Parsed, parse, syntaxErrorIn } from './parse.ts'
import { print } from './rope.ts'

export interface CompileOptions {
  /** 'task' makes marked functions preemptible; 'checker' makes every function and shared access visible. */
  mode?: 'task' | 'checker'
  /** How functions are made resumable in task mode: by unwinding, or as generators. A directive may say otherwise. */
  lowering?: 'frames' | 'generator'
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

/** Compiles one module. Never throws: what cannot be compiled stays as it is, with a diagnostic. */
export function compile(source: string, file: string, options: CompileOptions = {}): CompileResult {
  const lines = new Lines(source)
  const checking = options.mode === 'checker'
  const reporter = new Reporter(file, lines)
  const unchanged = (stats: FunctionStat[] = []): CompileResult => ({
    code: source,
    map: null,
    changed: false,
    diagnostics: reporter.sorted(),
    stats,
  })
  if (!checking && !source.includes('use task')) return unchanged()
  if (isTooDeep(source)) {
    reporter.warn('depth', 'this file stays plain: it is nested too deeply to be parsed', {
      start: 0,
      end: 0,
    })
    return unchanged()
  }
  let parsed: Parsed | null
  try {
    parsed = parse(source, file, reporter)
  } catch (error) {
    reporter.report('error', 'internal', `the parser failed: ${describe(error)}`, { start: 0, end: 0 })
    return unchanged()
  }
  if (parsed === null) return unchanged()
  const compilation = new Compilation(source, file, options, parsed)
  let first = compilation.attempt(new Set())
  if (first instanceof Failure && compilation.lowering === 'frames') {
    // What the one lowering fails on, the other may be able to do.
    compilation.lowering = 'generator'
    first = compilation.attempt(new Set())
  }
  const found = first instanceof Failure ? compilation.without(first) : first
  if (found instanceof Failure) {
    const message = `this file stays plain, because the compiler failed on it: ${found.reason}`
    reporter.warn('internal', message, { start: 0, end: 0 })
    return unchanged()
  }
  return found
}

/** Why an attempt came to nothing, and the functions that it tried. */
class Failure {
  readonly reason: string
  readonly tried: number[]

  constructor(reason: string, tried: number[]) {
    this.reason = reason
    this.tried = tried
  }
}

/** One file's attempts. The first nearly always is the last; a function that breaks one is left out of the next. */
class Compilation {
  readonly #source: string
  readonly #file: string
  readonly #options: CompileOptions
  readonly #parsed: Parsed
  lowering: 'frames' | 'generator'

  constructor(source: string, file: string, options: CompileOptions, parsed: Parsed) {
    this.lowering = options.lowering ?? 'generator'
    this.#source = source
    this.#file = file
    this.#options = options
    this.#parsed = parsed
  }

  /** Compiles all but the functions that start at these offsets. */
  attempt(excluded: ReadonlySet<number>, reason = ''): CompileResult | Failure {
    const source = this.#source
    const file = this.#file
    const { sourcemap, strip, runtime } = this.#options
    const checking = this.#options.mode === 'checker'
    let tried: number[] = []
    try {
      const lines = new Lines(source)
      const reporter = new Reporter(file, lines)
      const analysis = analyze(this.#parsed.program, this.#parsed.isModule)
      for (const func of analysis.funcs) {
        if (!excluded.has(func.node.start)) continue
        func.refuse('internal', `the compiler failed on it: ${reason}`, func.node)
      }
      classify(analysis, reporter, { everything: checking })
      tried = analysis.funcs.filter(({ twin }) => twin).map(({ node }) => node.start)
      const stats = statistics(analysis, lines)
      if (tried.length === 0) {
        return { code: source, map: null, changed: false, diagnostics: reporter.sorted(), stats }
      }
      const lowering = checking
        ? new CheckerLowering(source, analysis, file)
        : this.lowering === 'frames'
          ? new FramesLowering(source, analysis, { strip: strip ?? 512, choose: () => 'frames' })
          : new GeneratorLowering(source, analysis, { strip: strip ?? 512 })
      const output = lowering.program(runtime ?? (checking ? 'heddle/checker/runtime' : 'heddle/runtime'))
      const { code, map } = print(output, source, file, sourcemap !== false)
      const broken = syntaxErrorIn(code, file, this.#parsed.isModule)
      if (broken !== null) return new Failure(`what it wrote does not parse: ${broken}`, tried)
      return { code, map, changed: true, diagnostics: reporter.sorted(), stats }
    } catch (error) {
      return new Failure(describe(error), tried)
    }
  }

  /** Compiles without the functions that make it fail, which it finds by halving. */
  without(first: Failure): CompileResult | Failure {
    const excluded = new Set<number>()
    let last: CompileResult | Failure = first
    for (let round = 0; round < 16 && last instanceof Failure; round++) {
      const candidates: number[] = first.tried.filter(start => !excluded.has(start))
      if (candidates.length === 0) break
      let works = 0
      let fails = candidates.length
      while (fails - works > 1) {
        const middle = (works + fails) >> 1
        const trial = this.attempt(new Set([...excluded, ...candidates.slice(middle)]), last.reason)
        if (trial instanceof Failure) fails = middle
        else works = middle
      }
      excluded.add(candidates[fails - 1]!)
      last = this.attempt(excluded, last.reason)
    }
    return last
  }
}

function describe(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error)
}

function statistics({ funcs }: Analysis, lines: Lines): FunctionStat[] {
  const stats: FunctionStat[] = []
  for (const { name, node, kind, twin, why } of funcs) {
    if (kind === 'module' || kind === 'initializer') continue
    stats.push({ name, line: lines.at(node.start).line, form: twin ? 'twin' : 'plain', why })
  }
  return stats
}
