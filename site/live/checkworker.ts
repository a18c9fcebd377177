/**
 * The checker of the page, in a worker: a check that loops for ever is ended with its worker. The instrumented
 * module imports the checker from this module's own copy of it, through a global name.
 */
import { parse } from 'acorn'
import * as api from '../../src/checker/check.ts'
import { collectChecks, type DeclaredCheck, conclude } from '../../src/checker/check.ts'
import { CheckError } from '../../src/checker/errors.ts'
import { instrument } from '../../src/checker/instrument/instrument.ts'
import * as runtime from '../../src/checker/instrument/runtime.ts'
import type { CheckerData, RerunReply } from '../../src/checker/report/checkview.ts'
import { CheckList } from '../../src/checker/report/checklist.ts'

export type ToWorker =
  | { readonly kind: 'explore'; readonly code: string }
  | { readonly kind: 'ask'; readonly id: number; readonly data: unknown }

export type FromWorker =
  | { readonly kind: 'data'; readonly data: CheckerData }
  | { readonly kind: 'error'; readonly message: string }
  | { readonly kind: 'reply'; readonly id: number; readonly reply: RerunReply }

const FILE = 'page.check.js'
const SLICE_MS = 100

const post = (message: FromWorker): void => postMessage(message)
const list = new CheckList(file => (file.endsWith(FILE) ? code : undefined))
let code = ''

addEventListener('message', ({ data }: MessageEvent<ToWorker>) => {
  if (data.kind === 'ask') post({ kind: 'reply', id: data.id, reply: list.answer(data.data) })
  else void explore(data.code)
})

async function explore(text: string): Promise<void> {
  code = text
  try {
    for (const check of await declaredIn(text)) await exploreOne(check)
    list.over()
    post({ kind: 'data', data: list.data })
  } catch (error) {
    post({ kind: 'error', message: (error as Error).message })
  }
}

async function exploreOne({ name, options, setup }: DeclaredCheck): Promise<void> {
  const number = list.begin(FILE, name)
  try {
    const search = api.searchOf(name, options, setup)
    while (!search.run(SLICE_MS)) {
      list.progress(number, search.result, search)
      post({ kind: 'data', data: list.data })
      await new Promise(resolve => setTimeout(resolve))
    }
    const { result, steps } = conclude(search)
    list.end(number, result, steps, search)
  } catch (error) {
    if (!(error instanceof CheckError)) throw error
    list.wrong(number, error)
  }
}

/** The checks that the text declares. */
async function declaredIn(text: string): Promise<DeclaredCheck[]> {
  const names = new Map<string, object>([
    ['heddle/checker', api],
    ['heddle/checker/runtime', runtime],
  ])
  Object.assign(globalThis, { heddleModules: names })
  const { code: instrumented } = instrument(text, FILE, 'heddle/checker/runtime')
  const module = withAddresses(instrumented, names)
  const declared: DeclaredCheck[] = []
  collectChecks(check => {
    if ('asyncSetup' in check) throw new Error('check.async needs Node: run `heddle check`')
    declared.push(check)
  })
  const url = URL.createObjectURL(new Blob([module], { type: 'text/javascript' }))
  try {
    await import(/* @vite-ignore */ url)
  } finally {
    URL.revokeObjectURL(url)
    collectChecks(undefined)
  }
  if (declared.length === 0)
    throw new Error("the text declares no check: call check('name', () => ({ threads: … }))")
  return declared
}

/** The module with the address of each module that it imports. */
function withAddresses(text: string, names: ReadonlyMap<string, object>): string {
  let result = ''
  let at = 0
  for (const node of parse(text, { ecmaVersion: 'latest', sourceType: 'module' }).body) {
    if (!('source' in node) || !node.source) continue
    const name = String(node.source.value)
    const known = names.get(name)
    if (known === undefined) throw new Error(`the page cannot import '${name}': only 'heddle/checker'`)
    result += text.slice(at, node.source.start) + JSON.stringify(addressOf(name, known))
    at = node.source.end
  }
  return result + text.slice(at)
}

const addresses = new Map<string, string>()

/** The address of a module that exports again what this worker has loaded. */
function addressOf(name: string, exported: object): string {
  let address = addresses.get(name)
  if (address === undefined) {
    const lines = Object.keys(exported).map(key => `export const ${key} = all[${JSON.stringify(key)}]`)
    const text = `const all = globalThis.heddleModules.get(${JSON.stringify(name)})\n${lines.join('\n')}`
    address = URL.createObjectURL(new Blob([text], { type: 'text/javascript' }))
    addresses.set(name, address)
  }
  return address
}
