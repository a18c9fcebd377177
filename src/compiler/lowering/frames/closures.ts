/**
 * Functions that can move, and the closures that they make. Another thread must find both by name, so their
 * code stands outside of the functions around it:
 *
 *   second form   a function of the module. The variables that it captures are saved with its frame
 *   closure       made by a function of the module, its maker, which takes the captured variables
 *
 * A captured variable that changes is a box (plan.ts), so that all closures and frames share it. The code of
 * class members stands in a static block of the class, where private names have their meaning.
 */
import { capturesOf } from '../writer/arrowcaptures.ts'
import { namedProperty, propertyText } from '../writer/attach.ts'
import type { Context } from '../writer/context.ts'
import type { Func } from '../../analysis/functions.ts'
import type { Binding } from '../../analysis/scope.ts'
import { bare, boundNames, contains, isClass, isFunction, type Node, walk } from '../../analysis/syntax.ts'
import { Rope, rope } from '../../output/rope.ts'
import { bodyHash } from './bodyhash.ts'
import { StripFrame } from './statements/strips.ts'
import type { FramesLowering } from './frames.ts'
import { isLexical, isOnlySelfCaptured, isReadEarly, isWithin, needsBox } from './plan.ts'

/** A variable that a function captures: its name inside, and the value where the function is made. */
export interface Capture {
  readonly name: string
  readonly value: string
}

/** One entry of the registration. */
interface Entry {
  readonly func: Func
  second: { name: string; slots: readonly string[]; live: string } | null
  maker: { name: string; captures: string } | null
}

/** Where the code of a function stands. */
interface Place {
  readonly code: Rope
  readonly entries: Map<Func, Entry>
  /** Names that the code assigns: in a static block it cannot declare functions of the module. */
  readonly names: string[]
}

export class Closures {
  readonly #lowering: FramesLowering
  readonly #why = new Map<Func, string | null>()
  readonly #captured = new Map<Func, readonly Binding[]>()
  readonly #lifted = new Map<Func, { way: string; maker: string }>()
  readonly #places = new Map<Node | null, Place>()
  #keys: ReadonlyMap<Func, string> | null = null

  constructor(lowering: FramesLowering) {
    this.#lowering = lowering
  }

  /** Why the code of a function cannot stand outside of the code around it; or null. */
  whyFixed(func: Func): string | null {
    let why = this.#why.get(func)
    if (why === undefined) {
      // While the answer is found, a function that refers to itself counts as one that can.
      this.#why.set(func, null)
      why = this.#findWhy(func)
      this.#why.set(func, why)
    }
    return why
  }

  #findWhy(func: Func): string | null {
    const { analysis } = this.#lowering
    if (func.isAsync || func.isGenerator) return 'it is a generator or async itself'
    if (func.usesSuper) return 'it uses `super`'
    if (func.kind === 'constructor' && isLexical(func)) return 'it is the constructor of a derived class'
    if (func.refusals.some(({ code }) => code === 'eval' || code === 'with'))
      return 'it uses `eval` or `with`'
    if (declaresClass(func.node)) return 'a class is declared in it'
    for (let at: Func | null = func; at !== null && at.kind !== 'module'; at = at.parent) {
      if (at.kind === 'initializer') return 'it is made in a field of a class'
      if (at.owner !== null && at.parent?.kind !== 'module') return 'its class is declared inside a function'
    }
    const usesHost = func.isArrow && (func.usesThis || func.usesArguments || func.usesTarget)
    if (usesHost && func.host.kind === 'module' && !analysis.isModule)
      return 'it uses `this` or `arguments` of its module'
    for (const binding of this.#bindingsOf(func)) {
      const { scope, name } = binding
      if (scope.func.kind === 'module') {
        const isOwnClass = classAround(func)?.id?.name === name && binding.kind === 'class'
        if (!isOwnClass) return `it uses \`${name}\`, a variable of a block of the module`
      } else if (!this.#isShared(binding, func)) {
        return `it uses \`${name}\` of ${scope.func.name}, which cannot move`
      }
    }
    return null
  }

  /** True if a closure can take the variable along: it is in a box, or never changes. */
  #isShared(binding: Binding, func: Func): boolean {
    const { scope, kind, declarations } = binding
    if (this.#lowering.isMovable(scope.func)) return true
    if (binding.written || kind === 'var') return false
    if (kind === 'self' || kind === 'parameter' || kind === 'catch') return true
    let outermost = func
    while (outermost.parent !== null && outermost.parent !== scope.func) outermost = outermost.parent
    if (binding.iterates !== null && contains(binding.iterates, func.node)) return false
    return (
      kind !== 'function' && outermost.kind !== 'declaration' && outermost.node.start >= declarations[0]!.end
    )
  }

  /** The variables of functions and blocks around it that a function uses. */
  #bindingsOf(func: Func): readonly Binding[] {
    let found = this.#captured.get(func)
    if (found === undefined) {
      const { bindingOf, scopeOf, program } = this.#lowering.analysis
      const module = scopeOf.get(program)
      const all = new Set<Binding>()
      walk(func.node, node => {
        if (node.type !== 'Identifier' && node.type !== 'JSXIdentifier') return
        const binding = bindingOf.get(node)
        if (binding == null || binding.kind === 'import' || binding.scope === module) return
        if (isWithin(binding.scope.func, func)) return
        all.add(binding)
      })
      found = [...all]
      this.#captured.set(func, found)
    }
    return found
  }

  /** The variables that a function captures, where its code is written in this context. */
  captures(func: Func, cx: Context): Capture[] {
    const { names } = this.#lowering
    const found: Capture[] = []
    for (const binding of this.#bindingsOf(func)) {
      if (binding.scope.func.kind === 'module') continue
      // It knows itself by its own name.
      if (binding.target === func && isOnlySelfCaptured(binding)) continue
      const text = cx.renamed?.get(binding) ?? binding.name
      const name = text.endsWith('.v') ? text.slice(0, -2) : text
      found.push({ name, value: name })
    }
    return [...found, ...hostCaptures(func, cx, names)]
  }

  /** The name by which a function knows itself, if it uses one. */
  selfName(func: Func): string | null {
    const { self, binding } = func
    if (self !== null && self.references.length > 0) return self.name
    if (binding === null || binding.scope.func.kind === 'module' || !isOnlySelfCaptured(binding)) return null
    return binding.references.some(reference => reference.func !== binding.scope.func) ? binding.name : null
  }

  /**
   * A call of the maker of a closure, if it can have one. `write` writes the function; it is called once for
   * both forms of the function around.
   */
  lift(
    func: Func,
    cx: Context,
    way: 'made' | 'declared' | 'unmarked',
    write: (cx: Context) => Rope,
  ): Rope | null {
    if (!this.#isLifted(func, cx, way)) return null
    const { lowering } = this
    if (!this.#areBoxed(func, cx)) return null
    const list = this.captures(func, cx)
    const site = list.map(({ value }) => value).join(', ')
    const known = this.#lifted.get(func)
    if (known !== undefined) return known.way === way ? rope` ${known.maker}(${site})` : null
    const maker = lowering.names.fresh('make')
    this.#lifted.set(func, { way, maker })
    const inside: Context = {
      ...cx,
      readsCaptures: func.isArrow && usesHost(func),
      captureOwner: func.isArrow ? func.host : null,
    }
    let text = write(inside)
    const hint = lowering.hintOf(func.node)
    if (hint !== undefined && func.node.id == null && !lowering.attachesTwin(func, cx))
      text = namedProperty(hint, rope`${propertyText(hint)}: ${text}`)
    const parameters = list.map(({ name }) => name).join(', ')
    const made = [maker, ...list.map(({ name }) => name)].join(', ')
    const stamp = lowering.names.runtime('stamp')
    this.#define(func, maker, rope`(${parameters}) { return ${stamp}((${text}), [${made}]); }`)
    this.#entry(func).maker = { name: maker, captures: parameters }
    return rope` ${maker}(${site})`
  }

  /**
   * True if the variables that change, or that it may read before their declaration, are boxes here: not in a
   * generator that has the function's text.
   */
  #areBoxed(func: Func, cx: Context): boolean {
    return this.#bindingsOf(func).every(binding => {
      if (binding.scope.func.kind === 'module') return true
      if (!needsBox(binding) && !isReadEarly(binding, func)) return true
      return cx.renamed?.get(binding)?.endsWith('.v') === true
    })
  }

  #isLifted(func: Func, cx: Context, way: string): boolean {
    const { lowering } = this
    if (!func.movable || !cx.func.movable || cx.func.kind === 'module' || func.isText) return false
    const isMethod = func.kind === 'method' && func.owner === null
    if (!isMethod && func.kind !== 'arrow' && func.kind !== 'expression' && func.kind !== 'declaration')
      return false
    if (func.kind === 'declaration' && way !== 'declared') return false
    const isPlain = cx.frame === null || cx.frame instanceof StripFrame
    if (!isPlain || func.refusals.length > 0 || this.whyFixed(func) !== null) return false
    return !func.twin || lowering.isMovable(func)
  }

  get lowering(): FramesLowering {
    return this.#lowering
  }

  /** Adds the second form of a function. Returns its name. */
  addSecond(func: Func, code: Rope, slots: readonly string[], live: readonly ReadonlySet<number>[]): string {
    const name = this.#lowering.names.fresh(/^[a-z_$][\w$]*$/i.test(func.name) ? func.name : 'function')
    this.#define(func, name, code)
    this.#entry(func).second = { name, slots, live: liveText(live) }
    return name
  }

  #define(func: Func, name: string, code: Rope): void {
    const place = this.#placeOf(func)
    if (classAround(func) === null) place.code.add(rope`\nfunction ${name}${code}`)
    else {
      place.names.push(name)
      place.code.add(rope`${name} = function ${code};`)
    }
  }

  #placeOf(func: Func): Place {
    const owner = classAround(func)
    let place = this.#places.get(owner)
    if (place === undefined) {
      place = { code: new Rope(), entries: new Map(), names: [] }
      this.#places.set(owner, place)
    }
    return place
  }

  #entry(func: Func): Entry {
    const { entries } = this.#placeOf(func)
    let entry = entries.get(func)
    if (entry === undefined) entries.set(func, (entry = { func, second: null, maker: null }))
    return entry
  }

  /** The code that stands outside of all functions. */
  get outside(): Rope {
    const code = this.#places.get(null)?.code
    return code === undefined ? rope`` : rope`\n${code}`
  }

  /** The code of the members of a class, in a static block. */
  insideOf(node: Node, module: string): Rope {
    const place = this.#places.get(node)
    if (place === undefined) return rope``
    return rope` static { ${place.code}${this.#call(module, place, null)} }`
  }

  /** The code that registers the module's functions and variables, before its first statement. */
  registration(module: string): string {
    if (!this.#registers) return ''
    const place = this.#places.get(null) ?? { code: new Rope(), entries: new Map<Func, Entry>(), names: [] }
    const names = [...this.#places].flatMap(([owner, { names: own }]) => (owner === null ? [] : own))
    const declared = names.length === 0 ? '' : `var ${names.join(', ')};`
    return `${declared}${this.#call(module, place, this.#variables())}`
  }

  /** The last statement of the module: its objects get their names. */
  ending(module: string): string {
    if (!this.#registers || this.#returns) return ''
    return `\n;${this.#lowering.names.runtime('moduleLoaded')}(${JSON.stringify(module)}, ${this.#url});`
  }

  /** True for `export default` of an object without a name: a variable holds it, so that it gets one. */
  holdsDefault({ declaration }: Node): boolean {
    const value = bare(declaration)
    return this.#registers && /^(?:Object|Array|New|Call)Expression$/.test(value.type)
  }

  /** The variable for what the module exports as `default`. */
  get defaultName(): string {
    return (this.#defaultName ??= this.#lowering.names.fresh('default'))
  }

  #defaultName: string | null = null

  get #registers(): boolean {
    return this.#lowering.analysis.isMovable
  }

  /** A CommonJS module may return before its end. */
  get #returns(): boolean {
    const { isModule, program } = this.#lowering.analysis
    let found = false
    if (!isModule) {
      walk(program, node => {
        if (isFunction(node)) return false
        if (node.type === 'ReturnStatement') found = true
        return !found
      })
    }
    return found
  }

  get #url(): string {
    const { isModule } = this.#lowering.analysis
    return isModule ? 'import.meta.url' : `typeof __filename==='string'?__filename:''`
  }

  #call(module: string, { entries }: Place, variables: string | null): string {
    const { names } = this.#lowering
    const list = [...entries.values()].map(entry => this.#entryText(entry))
    const last = variables === null ? '' : `, ${variables}`
    return `${names.runtime('movable')}(${JSON.stringify(module)}, ${this.#url}, [${list.join(', ')}]${last});`
  }

  #entryText({ func, second, maker }: Entry): string {
    const meaning = [second?.slots.join(','), second?.live, maker?.captures].join(';')
    const { short } = this.#lowering.names
    const hash = bodyHash(func.node, meaning.replaceAll(short, '$'))
    const key = JSON.stringify(this.#keyOf(func))
    const slots = second === null ? '' : second.slots.join(',')
    const parts = [key, `'${hash}'`, JSON.stringify(slots), `'${second?.live ?? ''}'`]
    return `[${[...parts, second?.name ?? 0, maker?.name ?? 0].join(',')}]`
  }

  /** The variables of the module, as an object with a getter for each; those of others; the module's hash. */
  #variables(): string {
    const { scopeOf, program, isModule } = this.#lowering.analysis
    const taken = new Set<string>()
    const types = typeNames(program)
    const bindings = [...(scopeOf.get(program)?.bindings.values() ?? [])].filter(
      ({ kind, declarations, name }) =>
        (kind !== 'other' || declarations.length > 0) &&
        !types.has(name) &&
        !taken.has(name) &&
        taken.add(name),
    )
    const getters = bindings.map(({ name }) => `get ${name}(){return ${name}}`)
    if (!isModule && !taken.has('exports') && !taken.has('module'))
      getters.push(`get exports(){return typeof module==='object'?module.exports:void 0}`)
    getters.push(...this.#lowering.templates.getters)
    if (this.#defaultName !== null) getters.push(`get default(){return ${this.#defaultName}}`)
    const others = new Set(importedNames(program))
    const imports = bindings.map(({ name }) => name).filter(name => others.has(name))
    return `{${getters.join(',')}}, '${imports.join(',')}', '${bodyHash(program, '')}', ${this.#returns ? 0 : 1}`
  }

  /** The path of names to a function, unique in its module. */
  #keyOf(func: Func): string {
    this.#keys ??= keysOf(this.#lowering.analysis.funcs)
    return this.#keys.get(func)!
  }
}

/** `this`, `arguments` and `new.target`, which an arrow has from the function around it. */
export function hostCaptures(
  func: Func,
  { readsCaptures, renamed }: Pick<Context, 'readsCaptures' | 'renamed'>,
  names: FramesLowering['names'],
): Capture[] {
  if (!func.isArrow || func.host.kind === 'module') return []
  return capturesOf(func, 'uses', names).map(({ name, value }) => {
    const other =
      value === 'arguments'
        ? renamed?.get('arguments')
        : value === 'new.target'
          ? renamed?.get('target')
          : undefined
    if (other !== undefined) return { name: other, value: other }
    return { name, value: readsCaptures ? name : value }
  })
}

function usesHost({ usesThis, usesArguments, usesTarget }: Func): boolean {
  return usesThis || usesArguments || usesTarget
}

/** The class whose member the function is, or is made in; null for a function of the module. */
function classAround(func: Func): Node | null {
  let owner: Node | null = null
  for (let at: Func | null = func; at !== null; at = at.parent) owner = at.owner ?? owner
  return owner
}

/** True if the function's own code declares a class. */
function declaresClass(func: Node): boolean {
  let found = false
  walk(func.body, node => {
    if (isFunction(node)) return false
    if (isClass(node)) found = true
    return !found
  })
  return found
}

/** By resume point, the slots that are live there: a bit for each, in hexadecimal digits. */
function liveText(live: readonly (ReadonlySet<number> | undefined)[]): string {
  return Array.from(live, slots => {
    let bits = 0n
    for (const slot of slots ?? []) bits |= 1n << BigInt(slot)
    return bits.toString(16)
  }).join(';')
}

/** Names that only types have: `interface`, `type`, imports of types. */
function typeNames(program: Node): Set<string> {
  const found = new Set<string>()
  for (const statement of program.body as Node[]) {
    const node = statement.declaration ?? statement
    if (/^TS(?:Interface|TypeAlias)/.test(node.type) && node.id) found.add(node.id.name)
    if (node.declare === true && node.id) found.add(node.id.name)
    if (node.declare === true && node.declarations) {
      for (const { id } of node.declarations) for (const { name } of boundNames(id)) found.add(name)
    }
    if (statement.type !== 'ImportDeclaration') continue
    for (const specifier of statement.specifiers ?? []) {
      if (statement.importKind === 'type' || specifier.importKind === 'type') found.add(specifier.local.name)
    }
  }
  return found
}

/** The variables that other modules set. A JSON module has no state: what it holds is this module's. */
function* importedNames({ body }: Node): Generator<string> {
  for (const statement of body as Node[]) {
    const node = statement.declaration ?? statement
    if (node.type === 'ImportDeclaration' && !node.source.value.endsWith('.json')) {
      for (const { local } of node.specifiers) yield local.name
    } else if (node.type === 'TSImportEqualsDeclaration') yield node.id.name
    else if (node.type === 'VariableDeclaration') {
      for (const { id, init } of node.declarations) {
        if (init === null || !isRequire(bare(init))) continue
        for (const { name } of boundNames(id)) yield name
      }
    }
  }
}

/** `require('…')`, perhaps with a property of it. */
function isRequire(node: Node): boolean {
  if (node.type === 'MemberExpression') return isRequire(bare(node.object))
  if (node.type !== 'CallExpression') return false
  const [specifier] = node.arguments
  if (bare(node.callee).name === 'require')
    return typeof specifier?.value === 'string' && !specifier.value.endsWith('.json')
  // What transpilers write around it: `__importStar(require('…'))`.
  return node.arguments.length === 1 && isRequire(bare(specifier))
}

function keysOf(funcs: readonly Func[]): Map<Func, string> {
  const keys = new Map<Func, string>()
  const used = new Map<string, number>()
  for (const func of funcs) {
    const { parent, owner, holder, kind } = func
    const around = parent === null || parent.kind === 'module' ? [] : [keys.get(parent) ?? '']
    if (owner !== null) {
      around.push(owner.id?.name ?? 'class')
      if (holder?.static !== true && kind !== 'constructor') around.push('prototype')
    }
    let name = func.name === '(anonymous)' ? '' : func.name
    if (kind === 'getter') name += ':get'
    if (kind === 'setter') name += ':set'
    const path = [...around, name].join('.')
    const count = used.get(path) ?? 0
    used.set(path, count + 1)
    keys.set(func, count === 0 && name !== '' ? path : `${path}~${count}`)
  }
  return keys
}
