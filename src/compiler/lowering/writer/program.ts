/** The whole output: directives and comments, the runtime's imports, then the statements. */
import { exportsText } from '../../loading/commonjs.ts'
import { type Rope, rope } from '../../output/rope.ts'
import { directives, type Node } from '../../analysis/syntax.ts'
import { Available, type Context, noJumps } from './context.ts'
import type { Writer } from './writer.ts'

/**
 * The whole output. `preamble` comes first and `ending` behind the statements; both are called after these.
 */
export function writeProgram(
  writer: Writer,
  runtime: string,
  preamble: () => string,
  ending: () => string,
): Rope {
  const { program, root } = writer.analysis
  const cx: Context = {
    func: root,
    frame: null,
    attach: 'explicit',
    readsCaptures: false,
    captureOwner: null,
    available: new Available(null, new Set()),
    jumps: noJumps,
    renamed: null,
  }
  const head = directives(program.body)
  const first = head.length > 0 ? head[head.length - 1]!.end : afterComments(program, writer.source)
  const { attached, statements } = writer.list(program.body, cx, first, writer.source.length)
  const extra = preamble()
  const last = ending()
  const prelude = imports(writer, runtime)
  const break_ = head.length > 0 ? ';' : first === program.hashbang?.end ? '\n' : ''
  const exported = writer.analysis.isModule ? '' : exportsText(program, writer.source)
  return rope`${{ start: 0, end: first }}${break_}${prelude}${extra}${attached}${statements}${last}${exported}`
}

/** The imports of the runtime's names that the output uses. */
function imports({ names, analysis, fixesImports }: Writer, runtime: string): string {
  const used = names.imports()
  if (used.length === 0) return ''
  const { isModule } = analysis
  const fixed = isModule && fixesImports
  const list = used
    .map(([name, local]) => `${name}${isModule ? ' as ' : ':'}${fixed ? `${local}_` : local}`)
    .join(',')
  const from = JSON.stringify(runtime)
  if (!isModule) return `const {${list}}=require(${from});`
  const constants = fixed ? `const ${used.map(([, local]) => `${local}=${local}_`).join(',')};` : ''
  return `import {${list}} from ${from};${constants}`
}

/**
 * The offset of the first statement. Comments before it address other tools (`@jsx`, a licence) and stay
 * first.
 */
function afterComments(program: Node, source: string): number {
  const from = program.hashbang?.end ?? 0
  const first = program.body[0]?.start ?? from
  return /^(?:\s|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*$/.test(source.slice(from, first)) ? first : from
}
