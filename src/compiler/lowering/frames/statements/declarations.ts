/** Declarations in a function that unwinds: each sets its variable where the plan stores it. */
import { Rope, rope } from '../../../output/rope.ts'
import { isFunction, type Node } from '../../../analysis/syntax.ts'
import { writeAttachment } from '../../writer/attach.ts'
import type { Context } from '../../writer/context.ts'
import type { FramesLowering } from '../frames.ts'
import { declaredValue, namedValue, patternText } from '../expressions/patterns.ts'
import type { Variable } from '../plan.ts'
import type { Statements } from './statements.ts'

/** The planned variable of a name. */
function variableOf(at: Statements, id: Node): Variable | undefined {
  const binding = at.lowering.analysis.bindingOf.get(id)
  return binding == null ? undefined : at.plan.variables.get(binding)
}

/** The planned variable of a function or class declaration. */
function declaredBy(at: Statements, declaration: Node): Variable | undefined {
  for (const variable of at.plan.variables.values()) {
    if (variable.binding.declarations.includes(declaration)) return variable
  }
  return undefined
}

/** Sets a variable, or the box that holds it. */
function set(at: Statements, variable: Variable | undefined, id: Node, value: Rope): void {
  if (variable === undefined) at.simple(rope`${id.name}=${value};`)
  else if (variable.box === 'early') {
    at.simple(rope`${at.runtime('declared')}(${variable.name}, ${value});`)
  } else at.simple(rope`${variable.name}${variable.box === null ? '' : '.v'}=${value};`)
}

/** Sets a declared variable. */
export function assign(at: Statements, id: Node, value: Rope): void {
  const variable = id.type === 'Identifier' ? variableOf(at, id) : undefined
  if (variable?.box === 'early') {
    set(at, variable, id, value)
    return
  }
  if (id.type === 'Identifier') {
    at.simple(rope`${patternText(at, id)}=${value};`)
    return
  }
  // Reads of the value may run code between two variables of a pattern.
  const target = (name: Node): string | null => {
    const part = variableOf(at, name)
    return part?.box === 'early' ? `${at.runtime('declaring')}(${part.name}).v` : null
  }
  at.simple(rope`(${patternText(at, id, target)} = ${value});`)
}

/** The variables of a declaration, set one after the other. */
export function declare(at: Statements, node: Node): void {
  for (const { id, init } of node.declarations as Node[]) {
    const held = at.held
    if (init === null) {
      if (node.kind !== 'var') assign(at, id, rope`void 0`)
    } else {
      const value = namedValue(at, id, init)
      assign(at, id, id.type === 'Identifier' ? value : declaredValue(at, id, init, value))
    }
    at.release(held)
  }
}

/** The variables that live in this block. */
export function livingIn({ plan }: Statements, owner: Node): Variable[] {
  return (plan.declared.get(owner) ?? []).filter(({ storage }) => storage === 'block')
}

/** Makes the variables of a block visible while `write` runs. */
export function within(at: Statements, owner: Node, write: () => void): void {
  const declared = livingIn(at, owner)
  for (const variable of declared) at.opened.add(variable)
  write()
  for (const variable of declared) at.opened.delete(variable)
}

/** Declares the variables of a block, and makes the functions that are declared in it. */
export function open(at: Statements, owner: Node, statements: readonly Node[]): Rope {
  const declared = at.plan.declared.get(owner) ?? []
  const made = new Rope()
  for (const variable of declared) {
    const { storage, name, box } = variable
    if (storage === 'block') made.add(opening(at, variable))
    else if (box !== null && owner !== at.plan.func.node) at.simple(rope`${name} = ${initial(at, variable)};`)
  }
  for (const statement of statements) {
    if (statement.type !== 'FunctionDeclaration' || statement.body === null) continue
    const value = functionValue(at.lowering, statement, at.cx)
    set(at, declaredBy(at, statement), statement.id, value)
  }
  return made
}

/** The declaration of a block's variable: new, or in the second form the saved one. */
export function opening(at: Statements, variable: Variable): string {
  const { name } = variable
  const fresh = initial(at, variable)
  const index = at.slots.indexOf(name)
  return `let ${name} = ${at.guards ? `${at.p} ? ${at.prefix}v[${index}] : ${fresh}` : fresh}; `
}

/** The value of a variable before its declaration has run. */
function initial(at: Statements, { box, binding }: Variable): string {
  if (box === 'early') return `${at.runtime('early')}(${JSON.stringify(binding.name)})`
  return box === 'box' ? `new ${at.runtime('Box')}()` : 'void 0'
}

/** Sets the variable of a class declaration. */
export function declareClass(at: Statements, node: Node): void {
  set(at, declaredBy(at, node), node.id, at.verbatim(node))
}

/** The functions of a statement list that can be called by name. */
export function availableIn(
  lowering: FramesLowering,
  statements: readonly Node[],
  cx: Context,
): Context['available'] {
  // A generator made in a block has no name of its own there: calls find it through its function.
  const others = statements.filter(({ type }) => type !== 'FunctionDeclaration')
  const unwinding = statements.filter(
    node => isFunction(node) && lowering.isItself(lowering.analysis.funcOf.get(node)!),
  )
  return lowering.availableIn([...others, ...unwinding], cx)
}

/** A function declared in a block, as a value with its mark. */
function functionValue(lowering: FramesLowering, node: Node, cx: Context): Rope {
  const func = lowering.analysis.funcOf.get(node)!
  const write = (inside: Context): Rope => {
    const text = lowering.plain(node, func, inside)
    return lowering.attachesTwin(func, inside) ? writeAttachment(lowering, func, text, inside) : text
  }
  return lowering.closures.lift(func, cx, 'declared', write) ?? write(cx)
}
