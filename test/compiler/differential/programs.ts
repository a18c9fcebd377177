import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import * as runtime from '../../../src/compiler/runtime.ts'
import { compile, type CompileOptions, type CompileResult } from '../../../src/compiler/compile.ts'
import { evaluateModule, evaluateScript, type Namespace } from './evaluate.ts'

const folder = new URL('./fixtures/', import.meta.url)

/** The program files: each exported function is one program. */
export function programFiles(): string[] {
  return readdirSync(fileURLToPath(folder)).filter(name => /\.(c?js|ts)$/.test(name))
}

export function readProgram(name: string): string {
  const url = new URL(name, folder)
  if (!existsSync(url)) throw new Error(`no file of programs named ${name}`)
  return readFileSync(url, 'utf8')
}

const modules: Record<string, Namespace> = { 'heddle/runtime': runtime }

/** The module as plain code. */
export function plain(source: string, file: string): Namespace {
  return file.endsWith('.cjs') ? evaluateScript(source, file, modules) : evaluateModule(source, file, modules)
}

const outputs = new Map<string, CompileResult>()

/** The compiled module, a fresh instance each time. Throws if the compiler reports an error, or fails. */
export function compiled(source: string, file: string, options: CompileOptions = {}): Namespace {
  return plain(outputOf(source, file, options).code, file)
}

/** The compiler's output for a module. It is cached, because program files are evaluated many times. */
export function outputOf(source: string, file: string, options: CompileOptions = {}): CompileResult {
  const { lowering, strip, movable, whole, sourcemap } = options
  const key = `${file} ${lowering} ${strip} ${movable} ${whole} ${sourcemap} ${source}`
  const known = outputs.get(key)
  if (known !== undefined) return known
  const output = compile(source, file, options)
  // 'internal': the compiler failed, and wrote the functions in another way.
  const errors = output.diagnostics.filter(
    ({ severity, code }) => severity === 'error' || code === 'internal',
  )
  if (errors.length > 0)
    throw new SyntaxError(errors.map(({ message, frame }) => `${message}\n${frame}`).join('\n'))
  if (outputs.size > 100) outputs.clear()
  outputs.set(key, output)
  return output
}
