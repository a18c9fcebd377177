/**
 * Strips types for a Node that cannot. Each type becomes spaces, so that every line and column stays. Syntax
 * that is more than a type (`enum`, `namespace`, parameter properties) is refused, as Node refuses it.
 */
import { parseSync } from 'oxc-parser'
import { Lines } from '../output/lines.ts'
import type { Node } from '../analysis/syntax.ts'

/** Throws a SyntaxError with its position if the text does not parse, or has types that cannot be erased. */
export function stripTypes(source: string, file: string, isModule: boolean): string {
  const { program, errors } = parseSync(file, source, {
    lang: 'ts',
    sourceType: isModule ? 'module' : 'commonjs',
    preserveParens: true,
    showSemanticErrors: false,
  } as never)
  const error = errors.find(({ severity }) => (severity as string) === 'Error')
  if (error !== undefined) throw refusal(source, file, error.message, error.labels[0] ?? { start: 0, end: 0 })
  const eraser = new Eraser(source, file)
  eraser.visit(program as never)
  return eraser.text()
}

function refusal(
  source: string,
  file: string,
  message: string,
  place: { start: number; end: number },
): SyntaxError {
  const lines = new Lines(source)
  const { line, column } = lines.at(place.start)
  const frame = lines.frame(place.start, Math.min(place.end, place.start + 80))
  return new SyntaxError(`${message}\n${file}:${line}:${column}\n${frame}`)
}

/** Where the text has its first decorator, which no engine runs yet. Null: it has none. */
export function decoratorIn(source: string, file: string): string | null {
  const { program } = parseSync(file, source, { sourceType: 'unambiguous' } as never)
  const found = firstOf(({ type }) => type === 'Decorator', program as never)
  if (found === null) return null
  const way = 'node --import tsx --import heddle/register'
  const message = `a decorator needs a transpiler: run the program by \`${way}\`, or compile the file first`
  return refusal(source, file, message, found as never).message
}

/** Where the text has its first `using`, if this engine does not know it. Null: it has none. */
export function usingIn(source: string, file: string): string | null {
  if (hasUsing) return null
  const { program } = parseSync(file, source, { sourceType: 'unambiguous' } as never)
  const found = firstOf(isUsing, program as never)
  return found === null ? null : usingRefusal(source, file, found).message
}

const isUsing = ({ type, kind }: Node): boolean => type === 'VariableDeclaration' && kind.endsWith('using')

/** Before Node 24 it is a SyntaxError that names neither the file nor `using`. */
const hasUsing = ((): boolean => {
  try {
    // oxlint-disable-next-line no-new-func
    return typeof new Function('{ using none = null }') === 'function'
  } catch (error) {
    return !(error instanceof SyntaxError)
  }
})()

function usingRefusal(source: string, file: string, node: Node): SyntaxError {
  const instead = 'call close(), unlock() or the like in a `finally` instead, or compile the file first'
  return refusal(source, file, `\`${node.kind}\` is syntax of Node 24 and later: ${instead}`, node as never)
}

function firstOf(isWanted: (node: Node) => boolean, node: Node): Node | null {
  if (isWanted(node)) return node
  for (const value of Object.values(node)) {
    for (const item of Array.isArray(value) ? value : [value]) {
      const found = typeof item?.type === 'string' ? firstOf(isWanted, item as Node) : null
      if (found !== null) return found
    }
  }
  return null
}

/** Text that would continue an expression without a semicolon. */
const continues = /[([`+\-*/,.<]/

class Eraser {
  readonly #source: string
  readonly #file: string
  readonly #output: string[]

  constructor(source: string, file: string) {
    this.#source = source
    this.#file = file
    this.#output = source.split('')
  }

  text(): string {
    return this.#output.join('')
  }

  visit(node: Node): void {
    if (!this.#erases(node)) {
      for (const key in node) {
        const value = node[key]
        if (value === null || typeof value !== 'object') continue
        if (Array.isArray(value)) {
          for (const item of value) if (typeof item?.type === 'string') this.visit(item)
        } else if (typeof value.type === 'string') this.visit(value)
      }
    }
    if (isStatement(node)) this.#endStatement(node)
  }

  /** Erases the types of a node. Returns true if nothing of the node remains. */
  #erases(node: Node): boolean {
    switch (node.type) {
      case 'TSTypeAnnotation':
      case 'TSTypeParameterDeclaration':
      case 'TSTypeParameterInstantiation':
        this.#blank(node.start, node.end)
        return true
      case 'TSInterfaceDeclaration':
      case 'TSTypeAliasDeclaration':
      case 'TSDeclareFunction':
      case 'TSGlobalDeclaration':
      case 'TSNamespaceExportDeclaration':
        return this.#blankStatement(node)
      case 'TSIndexSignature':
      case 'TSAbstractMethodDefinition':
      case 'TSAbstractPropertyDefinition':
      case 'TSAbstractAccessorProperty':
        return this.#blankStatement(node)
      case 'TSEnumDeclaration':
        if (!node.declare) this.#refuse('an `enum`', 'write `const Name = { … } as const`', node)
        return this.#blankStatement(node)
      case 'TSModuleDeclaration':
        if (!node.declare && holdsValues(node))
          this.#refuse('a `namespace`', 'write a module of its own', node)
        return this.#blankStatement(node)
      case 'TSImportEqualsDeclaration':
        if (node.importKind !== 'type') this.#refuse('`import … = …`', "write `import … from '…'`", node)
        return this.#blankStatement(node)
      case 'TSExportAssignment':
        return this.#refuse('`export = …`', 'write `module.exports = …`, or `export default …`', node)
      case 'TSParameterProperty':
        return this.#refuse('a parameter property', 'declare the field, and assign it', node)
      case 'TSTypeAssertion':
        return this.#refuse('`<Type>value`', 'write `value as Type`', node)
      case 'TSAsExpression':
      case 'TSSatisfiesExpression':
        this.visit(node.expression)
        this.#blank(node.expression.end, node.end)
        return true
      case 'TSNonNullExpression':
        this.#blank(this.#past(node.expression.end), node.end)
        return false
      case 'ImportDeclaration':
        if (node.importKind === 'type') return this.#blankStatement(node)
        this.#blankTypeSpecifiers(node, 'importKind')
        return false
      case 'ExportNamedDeclaration':
      case 'ExportAllDeclaration':
      case 'ExportDefaultDeclaration':
        return this.#erasesExport(node)
      case 'VariableDeclaration':
        if (!hasUsing && isUsing(node)) throw usingRefusal(this.#source, this.#file, node)
        return node.declare === true && this.#blankStatement(node)
      case 'VariableDeclarator':
        if (node.definite) this.#blankMark(node.id, '!')
        return false
      case 'ClassDeclaration':
      case 'ClassExpression':
        if (node.declare) return this.#blankStatement(node)
        this.#blankClassHead(node)
        return false
      case 'MethodDefinition':
        if (node.value.type === 'TSEmptyBodyFunctionExpression') return this.#blankStatement(node)
        this.#blankModifiers(node)
        return false
      case 'PropertyDefinition':
      case 'AccessorProperty':
        if (node.declare) return this.#blankStatement(node)
        this.#blankModifiers(node)
        return false
      case 'Identifier':
      case 'ObjectPattern':
      case 'ArrayPattern':
        if (node.optional) this.#blankOptional(node)
        return false
      case 'ArrowFunctionExpression':
        this.#blankThis(node)
        this.#keepArrow(node)
        return false
      case 'FunctionDeclaration':
      case 'FunctionExpression':
        this.#blankThis(node)
        return false
      default:
        return false
    }
  }

  #erasesExport(node: Node): boolean {
    const { declaration } = node
    if (node.exportKind === 'type') return this.#blankStatement(node)
    if (declaration && this.#isErasable(declaration)) return this.#blankStatement(node)
    if (node.specifiers) this.#blankTypeSpecifiers(node, 'exportKind')
    return false
  }

  /** True for a declaration of which nothing remains. */
  #isErasable(node: Node): boolean {
    switch (node.type) {
      case 'TSInterfaceDeclaration':
      case 'TSTypeAliasDeclaration':
      case 'TSDeclareFunction':
        return true
      case 'TSModuleDeclaration':
        return node.declare === true || !holdsValues(node)
      default:
        return node.declare === true
    }
  }

  #blankTypeSpecifiers({ specifiers }: Node, kind: 'importKind' | 'exportKind'): void {
    for (const specifier of specifiers as Node[]) {
      if (specifier[kind] !== 'type') continue
      this.#blank(specifier.start, specifier.end)
      this.#blankNext(specifier.end, ',')
    }
  }

  #blankClassHead(node: Node): void {
    if (node.abstract) this.#blankWord(this.#afterDecorators(node), node.body.start, 'abstract')
    const list: Node[] = node.implements ?? []
    if (list.length === 0) return
    const before =
      node.superTypeArguments ?? node.superTypeParameters ?? node.superClass ?? node.typeParameters ?? node.id
    const start = this.#past(before?.end ?? node.start + 'class'.length)
    this.#blank(start, list.at(-1)!.end)
  }

  /** `public`, `readonly`, `override`, … before the name; `?` and `!` after it. */
  #blankModifiers(node: Node): void {
    const { key, computed } = node
    let at = this.#afterDecorators(node)
    while (at < key.start) {
      const word = /^[a-z]+/.exec(this.#source.slice(at, key.start))?.[0]
      if (word === undefined) break
      if (/^(?:public|private|protected|readonly|override)$/.test(word)) this.#blank(at, at + word.length)
      at = this.#past(at + word.length)
    }
    let end = key.end
    if (computed) end = this.#past(end) + 1
    const mark = this.#past(end)
    if (node.optional && this.#source[mark] === '?') this.#blank(mark, mark + 1)
    if (node.definite && this.#source[mark] === '!') this.#blank(mark, mark + 1)
    this.#guardField(node)
  }

  /**
   * `readonly` or `public` before `[x]` or `*x`: without the word, the line would continue the field before
   * it.
   */
  #guardField({ start }: Node): void {
    const first = this.#past(start)
    if (this.#output[start] === ' ' && continues.test(this.#outputFrom(first))) this.#output[start] = ';'
  }

  #outputFrom(from: number): string {
    for (let at = from; at < this.#output.length; at++) {
      const char = this.#output[at]!
      if (!/\s/.test(char)) return char
    }
    return ''
  }

  #afterDecorators({ start, decorators }: Node): number {
    const last = decorators?.at(-1)
    return last === undefined ? start : this.#past(last.end)
  }

  /** The `?` of a parameter is before its type, but inside the range of the pattern. */
  #blankOptional(node: Node): void {
    const end = node.typeAnnotation?.start ?? node.end
    const mark = this.#source.lastIndexOf('?', end)
    if (mark >= node.start) this.#blank(mark, mark + 1)
  }

  #blankMark({ start, end, typeAnnotation }: Node, mark: string): void {
    const limit = typeAnnotation?.start ?? end + 1
    const at = this.#source.lastIndexOf(mark, limit)
    if (at >= start) this.#blank(at, at + 1)
    else this.#blankNext(end, mark)
  }

  /** `this` as a first parameter is a type. */
  #blankThis({ params }: Node): void {
    const first: Node | undefined = params[0]
    if (first?.type !== 'Identifier' || first.name !== 'this') return
    this.#blank(first.start, first.end)
    this.#blankNext(first.end, ',')
  }

  /**
   * No line may end between `)` and `=>`, nor between `async` and `(`: the bracket moves to the other end of
   * the type.
   */
  #keepArrow(node: Node): void {
    const { returnType, typeParameters, async } = node
    if (returnType && this.#source.slice(returnType.start, returnType.end).includes('\n')) {
      const close = this.#source.lastIndexOf(')', returnType.start)
      this.visit(returnType)
      this.#output[close] = ' '
      this.#output[returnType.end - 1] = ')'
      node.returnType = null
    }
    if (
      async &&
      typeParameters &&
      this.#source.slice(typeParameters.start, typeParameters.end).includes('\n')
    ) {
      const open = this.#past(typeParameters.end)
      this.visit(typeParameters)
      this.#output[open] = ' '
      this.#output[typeParameters.start] = '('
      node.typeParameters = null
    }
  }

  #blankWord(from: number, to: number, word: string): void {
    const at = from + this.#source.slice(from, to).search(new RegExp(`\\b${word}\\b`))
    if (at >= from) this.#blank(at, at + word.length)
  }

  /** Blanks `mark` if it comes next. */
  #blankNext(from: number, mark: string): void {
    const at = this.#past(from)
    if (this.#source[at] === mark) this.#blank(at, at + 1)
  }

  /** The next offset that is neither space nor comment. */
  #past(from: number): number {
    const gap = /(?:\s|\/\/[^\n]*|\/\*[^]*?\*\/)*/y
    gap.lastIndex = from
    gap.exec(this.#source)
    return gap.lastIndex
  }

  #blank(start: number, end: number): void {
    for (let at = start; at < end; at++) {
      const char = this.#output[at]!
      if (char !== '\n' && char !== '\r' && char !== '\u2028' && char !== '\u2029') this.#output[at] = ' '
    }
  }

  /** Replaces a statement by a semicolon, because the line before may have none. */
  #blankStatement({ start, end }: Node): true {
    this.#blank(start, end)
    const next = this.#past(end)
    if (continues.test(this.#source[next] ?? '')) this.#output[start] = ';'
    return true
  }

  /** Adds a semicolon to a statement that ended with a type, if the next line would continue it. */
  #endStatement({ end }: Node): void {
    const last = this.#output[end - 1]
    if (last !== ' ' || this.#source[end - 1] === ' ') return
    if (continues.test(this.#source[this.#past(end)] ?? '')) this.#output[end - 1] = ';'
  }

  #refuse(what: string, instead: string, node: Node): never {
    throw refusal(
      this.#source,
      this.#file,
      `${what} cannot be erased as a type: ${instead}, or compile the file first`,
      node as never,
    )
  }
}

function isStatement({ type }: Node): boolean {
  return /^(?:ExpressionStatement|VariableDeclaration|ReturnStatement|ThrowStatement|ExportDefaultDeclaration|PropertyDefinition|AccessorProperty)$/.test(
    type,
  )
}

/** True unless the namespace contains only types. */
function holdsValues({ body }: Node): boolean {
  if (body === null || body === undefined) return false
  if (body.type === 'TSModuleDeclaration') return holdsValues(body)
  return (body.body as Node[]).some(statement => {
    const inner: Node =
      statement.type === 'ExportNamedDeclaration' && statement.declaration ? statement.declaration : statement
    if (inner.type === 'TSModuleDeclaration') return holdsValues(inner)
    return !/^TS(?:Interface|TypeAlias)Declaration$/.test(inner.type) && inner.declare !== true
  })
}
