/**
 * Results that are kept on disk under the hash of all their inputs, so that a second run of the same check
 * explores nothing. Only two kinds are kept: a check that was explored to its end, and one that reached a
 * bound that the check itself declares. Failures, wrong checks and stopped searches are explored again.
 */
import { join } from 'node:path'
import { cacheFolder, DiskCache } from '../../compiler/loading/diskcache.ts'
import type { AnyDeclaredCheck } from '../check.ts'
import type { CheckResult } from '../search/search.ts'
import { checkUrls, type LoadedCheck } from './files.ts'
import { type Inputs, inputsOf } from './inputs.ts'
import { graphChanges } from './modulegraph.ts'
import type { CheckOptions } from './options.ts'

/** Options that do not change the result of a search that is explored to its end. */
const undeciding: ReadonlySet<string> = new Set('time executions allowIncomplete shrink parallel'.split(' '))
const LIMIT_BYTES = 32 * 1024 * 1024

export class RememberedResults {
  private readonly caches = new Map<string, DiskCache>()
  /** Why results of a file are not kept, by file. */
  readonly unknown: Map<string, string> = new Map()

  /** The inputs of the check, with the options that the command gives. Call it before the check runs. */
  questionOf(file: string, check: LoadedCheck, options: CheckOptions): Question {
    const deciding = Object.entries(options).filter(([name]) => !undeciding.has(name))
    const inputs = inputsOf(checkUrls(file, check.options), [check.name, check.id, deciding])
    if (inputs.unknown !== undefined) this.unknown.set(file, inputs.unknown)
    return { file, check, options, inputs, graph: graphChanges() }
  }

  /** The result that is kept for the question, if there is one. */
  recall({ file, check, inputs }: Question): CheckResult | undefined {
    const text = inputs.hash === undefined ? null : (this.cacheOf(file)?.readText(inputs.hash) ?? null)
    if (text === null) return undefined
    const result = parsed(text)
    if (result === undefined || result.name !== check.name || !isKept(result, check)) return undefined
    return { ...result, failure: undefined, probability: result.probability, remembered: true }
  }

  /** Keeps a result if its kind is kept. `stopped`: the search was interrupted. */
  keep(question: Question, result: CheckResult, stopped: boolean): void {
    const { file, check, options, inputs, graph } = question
    if (inputs.hash === undefined || stopped || !isKept(result, check)) return
    if (!result.complete && isBoundedByCaller(check.options, options)) return
    if (graph !== graphChanges()) {
      this.unknown.set(file, 'it loads modules while it runs')
      return
    }
    this.cacheOf(file)?.writeText(inputs.hash, JSON.stringify(result))
  }

  private cacheOf(file: string): DiskCache | undefined {
    const folder = cacheFolder(file)
    if (folder === null) return undefined
    let cache = this.caches.get(folder)
    if (cache === undefined)
      this.caches.set(folder, (cache = new DiskCache(join(folder, 'checks'), LIMIT_BYTES)))
    return cache
  }
}

/** A check as it is about to be explored. */
export interface Question {
  readonly file: string
  readonly check: AnyDeclaredCheck
  readonly options: CheckOptions
  readonly inputs: Inputs
  /** The state of the module graph when the question was asked. */
  readonly graph: number
}

function parsed(text: string): CheckResult | undefined {
  try {
    return JSON.parse(text) as CheckResult
  } catch {
    return undefined
  }
}

function isKept({ ok, complete, outcome, failure }: CheckResult, { options }: AnyDeclaredCheck): boolean {
  if (!ok || failure !== undefined) return false
  return complete ? outcome === 'passed' : outcome === 'incomplete' && options.allowIncomplete === true
}

/** Whether a time, or a count that the check does not declare itself, may have ended the search. */
function isBoundedByCaller(own: CheckOptions, asked: CheckOptions): boolean {
  return asked.time !== undefined || asked.executions !== own.executions
}
