/**
 * Writes a whole function that unwinds: in two forms, of which the second is made on demand, or in one form
 * inside the variables that closures share.
 */
import { isTaskDirective } from '../../analysis/directive.ts'
import type { Func } from '../../analysis/functions.ts'
import { Rope, rope } from '../../output/rope.ts'
import type { Binding } from '../../analysis/scope.ts'
import { directives, isFunction, type Node } from '../../analysis/syntax.ts'
import { writeDeclaration } from '../writer/attach.ts'
import { type Context, noJumps } from '../writer/context.ts'
import type { FramesLowering } from './frames.ts'
import { Slots } from './emitter.ts'
import { earlySuperText } from './privatefields.ts'
import { type Parameter, writeHead, writeParameters } from './parameters.ts'
import { varStatement, takePermission } from './permission.ts'
import { isDerived, isLexical, type Plan } from './plan.ts'
import type { Statements } from './statements/statements.ts'

/** The parts that both ways to write a body need. */
interface Body {
  plan: Plan
  cx: Context
  patterns: readonly Parameter[]
  isDirective(statement: Node): boolean
}

export function writeUnwinding(lowering: FramesLowering, plan: Plan, outer: Context): Rope {
  const { node } = plan.func
  const cx = contextOf(lowering, plan, outer)
  const { head, patterns } = writeHead(lowering, node, plan.func)
  const kept = node.body.type === 'BlockStatement' ? directives(node.body.body) : []
  const strict = kept
    .filter(({ directive }) => !isTaskDirective(directive))
    .map(({ expression }) => `${expression.raw};`)
    .join('')
  const body: Body = { plan, cx, patterns, isDirective: statement => kept.includes(statement) }
  const text = plan.single ? writeSingle(lowering, body) : writeTwo(lowering, body)
  return rope`${head}{${strict}${earlySuperText(plan.func, lowering)}${text}}${{ start: node.body.end, end: node.end }}`
}

/** The context of the body: its variables have the names of the plan. */
function contextOf({ names }: FramesLowering, { func, variables, shared }: Plan, outer: Context): Context {
  const available = func.self === null ? outer.available : outer.available.with(func)
  const readsCaptures = func.isArrow && outer.readsCaptures
  const renamed = new Map<Binding | 'arguments' | 'target', string>(outer.renamed)
  for (const { binding, name, box } of variables.values()) {
    const text = box === null ? name : `${name}.v`
    if (text !== binding.name) renamed.set(binding, text)
  }
  const renames = !shared && !isLexical(func)
  if (renames && func.usesArguments) renamed.set('arguments', `${names.short}args`)
  if (renames && func.usesTarget) renamed.set('target', `${names.short}target`)
  return {
    func,
    frame: null,
    attach: 'all',
    readsCaptures,
    captureOwner: readsCaptures || func.isArrow ? outer.captureOwner : null,
    available,
    jumps: noJumps,
    renamed: renamed.size > 0 ? renamed : null,
  }
}

/**
 * Two forms. The first starts at the beginning. The second is inside it, is made on demand, and starts at any
 * resume point.
 */
function writeTwo(lowering: FramesLowering, { plan, cx, patterns, isDirective }: Body): Rope {
  const { func } = plan
  const { node } = func
  const { short: prefix } = lowering.names
  const slots = new Slots()
  const always: string[] = []
  const captured: string[] = []
  // An arrow has those of the function around it, which it captures.
  const lexical = plan.shared || isLexical(func)
  const isOwn = !lexical
  if (isOwn && cx.renamed?.has('arguments')) {
    always.push(`${prefix}args`)
    captured.push(`${prefix}args=arguments`)
  }
  if (isOwn && cx.renamed?.has('target')) {
    always.push(`${prefix}target`)
    captured.push(`${prefix}target=new.target`)
  }
  const unmarked = lowering.calledParameter(func)
  const { names } = lowering
  if (unmarked !== null) {
    always.push(`${prefix}m`)
    captured.push(`${prefix}m=${names.runtime('frames')}.made===${unmarked.name}`)
  }
  const clearing = unmarked === null ? '' : `if(${prefix}m)${names.runtime('frames')}.made=null;`
  // In the second form, which stands outside, everything that the function captures is saved.
  const outside = { ...cx }
  if (plan.movable) {
    for (const { name, value } of lowering.closures.captures(func, cx)) {
      always.push(name)
      if (value !== name) captured.push(`${name}=${value}`)
    }
    const self = lowering.closures.selfName(func)
    if (self !== null) always.push(self)
    if (func.isArrow) Object.assign(outside, { readsCaptures: true, captureOwner: func.host })
  }
  const functions = plan.shared ? writeDeclared(lowering, plan, cx) : null
  const inside = functions?.inside ?? cx
  const isSkipped = (statement: Node): boolean =>
    isDirective(statement) || (plan.shared && isFunction(statement))
  const first = lowering.statements(func, inside, false, slots)
  first.always.push(...always)
  const text = first.body(node.body, isSkipped)
  const parameters = new Set(namedParameters(node))
  const variables = slotVariables(plan)
  const own = variables.filter(name => !parameters.has(name)).map(name => opened(lowering, plan, name))
  const temporaries = temporariesOf(first)
  const set = rope`${writeParameters(lowering, first, patterns, inside, plan.shared)}${functions?.text ?? ''}`
  const count = first.counts ? [`${prefix}n=0`] : []
  const boxed = plan.movable ? boxedParameters(plan) : ''
  const resumable = first.resumePoints > 0
  const position = resumable ? [`${prefix}p`, ...(first.isCompact ? [] : [`${prefix}v`])] : []
  const declares = [
    ...(plan.shared ? sharedVariables(lowering, plan) : []),
    ...own,
    ...temporaries,
    ...position,
    ...blockVariables(first),
    ...captured,
    ...count,
  ]
  const start = `${takePermission(lowering, func, declares)}${clearing}${boxed}`
  if (!resumable) return rope`${start}${set}${text}`
  const save = lowering.names.runtime('save')
  lowering.names.runtime('take')
  const second = lowering.statements(
    func,
    { ...(functions?.inside ?? outside), building: buildingOf(lowering, func) },
    true,
    slots,
  )
  second.always.push(...always)
  const going = second.body(node.body, isSkipped)
  const locals = [...new Set([...variables, ...temporaries, ...always])]
  const restored = restoring(locals, slots, prefix)
  const self = lexical ? 'void 0' : 'this'
  const name = func.name === '(anonymous)' || func.name === '[computed]' ? '' : func.name
  const isWord = /^[a-z_$][\w$]*$/i.test(name)
  const key = isWord ? name : JSON.stringify(name)
  const access = isWord ? `.${name}` : `[${key}]`
  const permission = `${prefix}k=${lowering.passesPermission(func) ? lowering.names.runtime('frames') : '1'}`
  const declared = varStatement([...restored, ...count, ...blockVariables(second), permission])
  const inner = rope`${declared}${prefix}o:{${going}${endOf(func)}}return ${save}(${self},${prefix}p,${second.savedText},null);`
  if (plan.movable) {
    const live = first.live.map((slot, point) => new Set([...slot, ...(second.live[point] ?? [])]))
    const strict = func.strict && !lowering.analysis.isModule ? "'use strict';" : ''
    const code = rope`(${prefix}p,${prefix}v){${strict}${inner}}`
    const form = lowering.closures.addSecond(func, code, slots.names, live)
    return rope`${start}${set}${prefix}o:{${text}${returns(node) ? '' : 'return;'}}return ${exitText(lowering, func, rope`${save}(${self},${prefix}p,${first.savedText},${form})`)};`
  }
  const again = lexical
    ? rope`{${key}:(${prefix}p,${prefix}v)=>{${inner}}}${access}`
    : rope`{${key}(${prefix}p,${prefix}v){${inner}}}${access}`
  return rope`${start}${set}${prefix}o:{${text}${returns(node) ? '' : 'return;'}}return ${exitText(lowering, func, rope`${save}(${self},${prefix}p,${first.savedText},${again})`)};`
}

/** The functions that the body declares, which stand once for both forms, and the context that knows them. */
function writeDeclared(
  lowering: FramesLowering,
  { func }: Plan,
  cx: Context,
): { inside: Context; text: Rope } {
  const statements: Node[] = func.node.body.body
  const inside: Context = { ...cx, available: lowering.availableIn(statements, cx) }
  const { functions, marks } = writeFunctions(lowering, statements, inside)
  return { inside, text: rope`${marks}${functions}` }
}

/** A variable of a movable function as it is declared: a box from the start, if closures share it. */
function opened({ names }: FramesLowering, { movable, variables, func }: Plan, name: string): string {
  if (!movable) return name
  for (const variable of variables.values()) {
    if (variable.name !== name || variable.box === null || variable.owner !== func.node) continue
    if (variable.box === 'box') return `${name}=new ${names.runtime('Box')}()`
    return `${name}=${names.runtime('early')}(${JSON.stringify(variable.binding.name)})`
  }
  return name
}

/** Puts the parameters that the engine has set into their boxes. */
function boxedParameters({ variables, func }: Plan): string {
  const given = new Set(namedParameters(func.node))
  let text = ''
  for (const { binding, box, name } of variables.values()) {
    if (box !== null && binding.kind === 'parameter' && given.has(binding.name))
      text += `${name}.v=${binding.name};`
  }
  return text
}

/** True if every path through the body ends with a `return`. */
function returns({ body }: Node): boolean {
  return body.type !== 'BlockStatement' || body.body.at(-1)?.type === 'ReturnStatement'
}

/** One form that starts at any resume point, inside the variables that closures share. */
function writeSingle(lowering: FramesLowering, { plan, cx, patterns, isDirective }: Body): Rope {
  const { func } = plan
  const { node } = func
  const { short: prefix } = lowering.names
  const statements: Node[] = node.body.type === 'BlockStatement' ? node.body.body : []
  const inside: Context = {
    ...cx,
    available: lowering.availableIn(statements, cx),
    building: buildingOf(lowering, func),
  }
  const { functions, marks } = writeFunctions(lowering, statements, inside)
  const slots = new Slots()
  const form = lowering.statements(func, inside, true, slots)
  const text = form.body(node.body, statement => isDirective(statement) || isFunction(statement))
  const shared = varStatement(sharedVariables(lowering, plan))
  const variables = [...slotVariables(plan), ...temporariesOf(form)]
  const restored = restoring(variables, slots, prefix)
  const set = writeParameters(lowering, form, patterns, inside, true)
  const start = rope`${takePermission(lowering, func, [])}${shared}${set}${marks}`
  if (form.counts) restored.push(`${prefix}n=0`)
  if (form.resumePoints === 0) {
    return rope`${start}${varStatement(variables)}const ${prefix}p = 0; ${functions}${text}`
  }
  const save = lowering.names.runtime('save')
  lowering.names.runtime('take')
  const again = `${lowering.names.prefix}r`
  const locals = `${varStatement(restored)}${varStatement(blockVariables(form))}`
  const inner = rope`${locals}${prefix}o:{${text}${endOf(func)}}return ${save}(void 0,${prefix}p,${form.savedText},${again});`
  const first = rope`${again}(0, ${lowering.names.runtime('nothing')})`
  const result =
    func.kind === 'constructor' ? rope`${first} ?? ${exitText(lowering, func, rope`void 0`)}` : first
  return rope`${start}${functions}const ${again}=(${prefix}p,${prefix}v)=>{${inner}};return ${result};`
}

/** How a function exits after it saved its frame; a constructor depends on its caller. */
function exitText({ names }: FramesLowering, { kind }: Func, saved: Rope): Rope {
  return kind === 'constructor' ? rope`${names.runtime('left')}(${names.short}how, ${saved})` : saved
}

/** The second form of a constructor returns the object itself, because its `new` has already returned. */
function buildingOf({ names }: FramesLowering, func: Func): string | undefined {
  if (func.kind !== 'constructor') return undefined
  return names.runtime(isDerived(func) ? 'derived' : 'based')
}

/** The end of a second form. */
function endOf({ kind }: Func): string {
  return kind === 'constructor' ? 'return this;' : 'return;'
}

/** The functions that a body declares, which are outside its form, and the code that marks them. */
function writeFunctions(
  lowering: FramesLowering,
  statements: readonly Node[],
  cx: Context,
): { functions: Rope; marks: Rope } {
  const functions = new Rope()
  const marks = new Rope()
  for (const statement of statements) {
    if (!isFunction(statement)) continue
    const inner = lowering.analysis.funcOf.get(statement)!
    if (lowering.attachesTwin(inner, cx)) {
      const { plain, beside, attach } = writeDeclaration(lowering, statement, statement, inner, cx)
      functions.add(plain).add(' ').add(beside).add(' ')
      marks.add(attach)
    } else functions.add(lowering.plain(statement, inner, cx)).add(' ')
  }
  return { functions, marks }
}

/** The variables outside the form, without parameters and functions, which declare themselves. */
function sharedVariables({ names, analysis }: FramesLowering, { func, variables }: Plan): string[] {
  const all = [...variables.values()]
  const declared = new Set<string>()
  for (const { binding, name } of all) {
    const isFunctionHere = binding.kind === 'function' && binding.scope === analysis.scopeOf.get(func.node)
    if (isFunctionHere || binding.kind === 'parameter') declared.add(name)
  }
  return all
    .filter(({ storage, name }) => storage === 'entry' && !declared.has(name))
    .map(({ name, box, binding, owner }) => {
      if (box === null || owner !== func.node) return name
      return `${name} = ${names.runtime('early')}(${JSON.stringify(binding.name)})`
    })
}

/** The parameters that the engine itself sets. */
function* namedParameters({ params }: Node): Generator<string> {
  for (const { type, name, argument } of params as Node[]) {
    if (type === 'Identifier') yield name
    if (type === 'RestElement' && argument.type === 'Identifier') yield argument.name
  }
}

/** The variables that live inside the form. */
function slotVariables({ variables }: Plan): string[] {
  return [...variables.values()].filter(({ storage }) => storage === 'slot').map(({ name }) => name)
}

function temporariesOf({ temporaries, prefix }: Statements): string[] {
  return Array.from({ length: temporaries }, (_, index) => `${prefix}${index}`)
}

/** The variables through which a form saves block variables. */
function blockVariables({ blocks, prefix }: Statements): string[] {
  return [...blocks].map(name => `${prefix}b_${name}`)
}

/** The variables as the second form declares them: those that were saved have their values. */
function restoring(names: readonly string[], slots: Slots, prefix: string): string[] {
  const saved = names.filter(name => slots.has(name))
  const others = names.filter(name => !slots.has(name))
  if (saved.length === 0) return others
  return [`{${saved.map(name => `${slots.indexOf(name)}:${name}`).join(',')}}=${prefix}v`, ...others]
}
