/** Which files of the suite are run, and the metadata of each. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * In `test/` of the suite: the language, and the built-ins that take callbacks or have a form in the runtime.
 */
const folders: readonly string[] = [
  ...below(
    'language',
    `arguments-object asi block-scope computed-property-names destructuring directive-prologue eval-code expressions
    function-code identifier-resolution literals rest-parameters statementList statements types`,
  ),
  'annexB/language',
  ...below(
    'built-ins/Array/prototype',
    `every filter find findIndex findLast findLastIndex flatMap forEach join map reduce reduceRight some sort toSorted`,
  ),
  ...below(
    'built-ins/TypedArray/prototype',
    `every filter find findIndex findLast findLastIndex forEach map reduce reduceRight some sort toSorted`,
  ),
  ...below(
    'built-ins',
    `Array/from Array/fromAsync TypedArray/from Map/prototype/forEach Map/groupBy Set/prototype/forEach Object/groupBy
    Function/prototype/apply Function/prototype/bind Function/prototype/call Reflect/apply Reflect/construct
    String/prototype/replace String/prototype/replaceAll String/prototype/split JSON/parse JSON/stringify Promise Iterator Proxy
    GeneratorFunction GeneratorPrototype AsyncGeneratorFunction AsyncGeneratorPrototype AsyncFunction Symbol/iterator
    Symbol/asyncIterator DisposableStack`,
  ),
]

function below(folder: string, names: string): string[] {
  return names.split(/\s+/).map(name => `${folder}/${name}`)
}

export interface Test {
  /** The path in `test/` of the suite. */
  path: string
  source: string
  includes: string[]
  isAsync: boolean
  /** The error that the test must end with. */
  throws: string | null
  strict: boolean
}

/** The paths of the tests whose path contains the filter. */
export function testPaths(suite: string, filter: string): string[] {
  const found: string[] = []
  for (const folder of folders) {
    const root = join(suite, 'test', folder)
    for (const name of readdirSync(root, { recursive: true, encoding: 'utf8' })) {
      const path = `${folder}/${name}`
      if (name.endsWith('.js') && !name.includes('_FIXTURE') && path.includes(filter)) found.push(path)
    }
  }
  return found.sort()
}

/** A test in the language modes that it names; none when it cannot be the body of a function. */
export function readTest(suite: string, path: string): Test[] {
  const source = readFileSync(join(suite, 'test', path), 'utf8')
  const head = /\/\*---([\s\S]*?)---\*\//.exec(source)?.[1] ?? ''
  const listOf = (name: string): string[] => {
    const inline = new RegExp(`^${name}:\\s*\\[([^\\]]*)\\]`, 'm').exec(head)
    if (inline !== null) return inline[1]!.split(',').map(item => item.trim())
    const block = new RegExp(`^${name}:\\s*\\n((?:\\s+- .*\\n?)+)`, 'm').exec(head)
    return block === null ? [] : [...block[1]!.matchAll(/- (\S+)/g)].map(match => match[1]!)
  }
  const flags = listOf('flags').filter(flag => flag !== '')
  if (flags.some(flag => /^(?:raw|module|CanBlockIsFalse|CanBlockIsTrue)$/.test(flag))) return []
  const negative = /^negative:\s*\n((?: +.*\n?)+)/m.exec(head)?.[1]
  if (negative !== undefined && !/phase:\s*runtime/.test(negative)) return []
  const throws = negative === undefined ? null : /type:\s*(\w+)/.exec(negative)![1]!
  const test = {
    path,
    source,
    includes: listOf('includes').filter(name => name !== ''),
    isAsync: flags.includes('async'),
    throws,
  }
  const strictness = [false, true].filter(strict => !flags.includes(strict ? 'noStrict' : 'onlyStrict'))
  return strictness.map(strict => ({ ...test, strict }))
}
