/** The entry point of the compiler: source text in; output text, a source map and diagnostics out. */
import type { Analysis } from './analysis/analysis.ts'
import { analyze } from './analysis/analyze.ts'
import type { ModuleCostsLookup } from './analysis/importedcosts.ts'
import { classify } from './analysis/classify.ts'
import { Reporter } from './output/diagnostics.ts'
import { isModuleText, isScript } from './output/enginecheck.ts'
import type { LoweringName } from './analysis/directive.ts'
import type { Func } from './analysis/functions.ts'
import { CheckerLowering } from './lowering/checker/checker.ts'
import { chooseLowering } from './lowering/chooselowering.ts'
import { FramesLowering } from './lowering/frames/frames.ts'
import { GeneratorLowering } from './lowering/generator/generator.ts'
import { Lines } from './output/lines.ts'
import { isTooDeep, type Parsed, parse, reportEarlyErrors, syntaxErrorIn } from './analysis/parse.ts'
import { print, type Rope } from './output/rope.ts'
import { warn } from './output/warnings.ts'

export interface CompileOptions {
  /** 'task' makes marked functions preemptible; 'checker' makes every function and shared access visible. */
  mode?: 'task' | 'checker'
  /**
   * The lowering in task mode. Default: the better one for each function. A directive of the function or
   * module (`'use task frames'`, `'use task generator'`) has precedence.
   */
  lowering?: LoweringName
  /**
   * True if every marked function can move to another CPU, as with `'use task movable'`. See docs/moving.md.
   */
  movable?: boolean
  /** The key by which the code of a task that moved is found elsewhere. Default: the file. */
  key?: string
  /** The module from which the output imports its runtime. */
  runtime?: string
  /** False omits the source map. */
  sourcemap?: boolean
  /** True compiles every function, as if the module began with 'use task'. */
  whole?: boolean
  /** Returns the costs of imported modules. With `whole`, their brief functions are called plainly. */
  neighbour?: ModuleCostsLookup
  /** In checker mode: counts statements and branches. */
  coverage?: boolean
  /** In checker mode: a word that the text of each function of the output contains. */
  mark?: string
  /**
   * How many turns of a loop without calls run between two checks of the safepoint. Default: 512. Tests use
   * less.
   */
  strip?: number
}

export interface Diagnostic {
  severity: 'error' | 'warning'
  message: string
  file: string
  /** 1-based. */
  line: number
  /** 1-based. */
  column: number
  /** The lines around the problem, with a caret. */
  frame: string
  /** A short, stable name for the kind of problem. */
  code: string
}

export interface FunctionStat {
  name: string
  line: number
  form: 'twin' | 'plain'
  /** The lowering of a resumable form, in task mode. */
  lowering?: LoweringName
  why: string
  /** For a function that was asked to be movable: null if it can move, else why not. */
  fixed?: string | null
}

export interface CompileResult {
  code: string
  map: object | null
  changed: boolean
  diagnostics: Diagnostic[]
  stats: FunctionStat[]
}

/** Compiles one module. Never throws: code that cannot be compiled stays as it is, with a diagnostic. */
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
  if (!checking && options.whole !== true && !source.includes('use task')) return unchanged()
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
  const first = compilation.first()
  // The output may be wrong because the source has an early error, which only scopes show.
  if (first instanceof Failure && reportEarlyErrors(source, file, parsed.isModule, reporter))
    return unchanged()
  const found = first instanceof Failure ? compilation.without(first) : first
  if (found instanceof Failure) {
    const message = `this file stays plain, because the compiler failed on it: ${found.reason}`
    reporter.warn('internal', message, { start: 0, end: 0 })
    return unchanged()
  }
  return found
}

/** The reason of a failed attempt, and the functions that it compiled. */
class Failure {
  readonly reason: string
  readonly tried: number[]

  constructor(reason: string, tried: number[]) {
    this.reason = reason
    this.tried = tried
  }
}

/**
 * The attempts for one file. The first nearly always succeeds. The next leaves out a function that failed.
 */
class Compilation {
  readonly #source: string
  readonly #file: string
  readonly #options: CompileOptions
  readonly #parsed: Parsed
  #onlyGenerators = false

  constructor(source: string, file: string, options: CompileOptions, parsed: Parsed) {
    this.#source = source
    this.#file = file
    this.#options = options
    this.#parsed = parsed
  }

  /** The first attempt. If the frames lowering fails, the generator lowering may succeed. */
  first(): CompileResult | Failure {
    const made = this.attempt(new Set())
    if (!(made instanceof Failure) || this.#options.mode === 'checker') return made
    this.#onlyGenerators = true
    const other = this.attempt(new Set())
    if (!(other instanceof Failure)) {
      const reporter = new Reporter(this.#file, new Lines(this.#source))
      const message = `the functions of this file run slowly, as generators, and cannot move, because the compiler failed on it: ${made.reason}`
      reporter.warn('internal', message, { start: 0, end: 0 })
      other.diagnostics.unshift(...reporter.found)
    }
    return other
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
      const { whole, neighbour, movable } = this.#options
      classify(analysis, {
        everything: checking,
        whole: whole === true,
        movable: movable === true,
        neighbour,
      })
      const lowering = checking
        ? new CheckerLowering(source, analysis, file, this.#options.coverage === true, this.#options.mark)
        : this.#task(analysis, strip ?? 512)
      keepPlain(analysis, lowering)
      tried = analysis.funcs.filter(({ twin }) => twin).map(({ node }) => node.start)
      warn(analysis, reporter, checking, func => func.twin && lowering.isItself(func))
      const stats = statistics(analysis, lines)
      if (tried.length === 0 && (checking || !analysis.isMovable)) {
        return { code: source, map: null, changed: false, diagnostics: reporter.sorted(), stats }
      }
      if (lowering instanceof FramesLowering) addLowerings(stats, analysis, lowering)
      const output = lowering.program(runtime ?? (checking ? 'heddle/checker/runtime' : 'heddle/runtime'))
      const { code, map } = print(output, source, file, sourcemap !== false)
      const broken = this.#check(output, code)
      if (broken !== null) return new Failure(`its output does not parse: ${broken}`, tried)
      return { code, map, changed: true, diagnostics: reporter.sorted(), stats }
    } catch (error) {
      return new Failure(describe(error), tried)
    }
  }

  /** The syntax error in the output, or null. */
  #check(output: Rope, code: string): string | null {
    const { isModule, program } = this.#parsed
    if (isModule ? isModuleText(output, this.#source, program) : isScript(code)) return null
    return syntaxErrorIn(code, this.#file, isModule)
  }

  /**
   * The lowering of each function: by its directive, else by the option, else by the rule of
   * chooselowering.ts.
   */
  #task(analysis: Analysis, strip: number): GeneratorLowering {
    const given = this.#onlyGenerators ? 'generator' : this.#options.lowering
    const asks =
      !this.#onlyGenerators && (analysis.isMovable || analysis.funcs.some(({ asked }) => asked === 'frames'))
    if (given === 'generator' && !asks) return new GeneratorLowering(this.#source, analysis, { strip })
    const choose = (func: Func): LoweringName => func.asked ?? given ?? chooseLowering(func, analysis)
    const movable = { key: this.#options.key ?? this.#file }
    return new FramesLowering(this.#source, analysis, { strip, choose, movable })
  }

  /** Compiles without the functions that fail. A binary search finds them. */
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

/** Constructors and accessors unwind or stay plain: `new` and property accesses cannot call a generator. */
function keepPlain({ funcs }: Analysis, lowering: GeneratorLowering): void {
  for (const func of funcs) {
    if (lowering instanceof CheckerLowering || !isImplicit(func) || !func.twin || lowering.isItself(func))
      continue
    const reason = lowering instanceof FramesLowering ? lowering.whyGenerator(func) : null
    const caller = func.kind === 'constructor' ? 'which `new` cannot call' : 'which a property cannot call'
    const why = `it could only be resumed as a generator, ${caller}${reason === null ? '' : `: ${reason}`}`
    func.twin = false
    func.why = why
    func.refuse(func.kind, why, func.holder ?? func.node)
  }
}

/** True for functions that no call expression calls. */
function isImplicit({ kind }: Func): boolean {
  return kind === 'constructor' || kind === 'getter' || kind === 'setter'
}

function describe(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error)
}

/** Adds the lowering of each resumable form, and the reason if it is a generator. */
function addLowerings(stats: FunctionStat[], { funcs }: Analysis, lowering: FramesLowering): void {
  const told = funcs.filter(({ kind }) => kind !== 'module' && kind !== 'initializer')
  for (const [index, func] of told.entries()) {
    const stat = stats[index]!
    if (!func.twin) continue
    const reason = lowering.whyGenerator(func)
    stat.lowering = reason === null ? 'frames' : 'generator'
    if (reason !== null) stat.why += `; a generator, because ${reason}`
    if (func.movable) stat.fixed = lowering.whyFixed(func)
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
