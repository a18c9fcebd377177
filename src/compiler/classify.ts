/**
 * Which functions are tasks, which of them can run long, and which get a resumable form. Knows nothing of how that
 * form is made.
 */
import type { Analysis } from './analyze.ts'
import { lightMethods, shortGlobals, shortMethods, shortNamespaces } from './builtins.ts'
import type { Reporter } from './diagnostics.ts'
import { markIn } from './directive.ts'
import type { Call, Func } from './functions.ts'
import { isBuiltIn, typeOf } from './types.ts'
import { bare, isFunction, keyName, type Node } from './syntax.ts'

export interface ClassifyOptions {
  /** Every function gets a resumable form, marked or not, short or not. */
  everything: boolean
}

/** Fills in marks, call targets, `recursive`, `long`, `twin` and `why`, and reports what stays plain and should not. */
export function classify(analysis: Analysis, reporter: Reporter, { everything }: ClassifyOptions): void {
  for (const func of analysis.funcs) {
    name(func)
    refuseUnsupported(func, everything)
  }
  mark(analysis, everything)
  for (const func of analysis.funcs) for (const call of func.calls) aim(call, analysis)
  findRecursion(analysis.funcs)
  findLong(analysis.funcs)
  choose(analysis, everything)
  warn(analysis, reporter, everything)
}

function name(func: Func): void {
  const { holder, node } = func
  if (holder !== null && func.name === '') func.name = keyName(holder) ?? '[computed]'
  if (func.kind === 'constructor') func.name = 'constructor'
  if (func.kind === 'initializer') {
    func.name =
      node.type === 'StaticBlock' ? 'static block' : `initializer of ${keyName(node) ?? '[computed]'}`
  }
  if (func.name === '') func.name = func.kind === 'module' ? 'module' : '(anonymous)'
}

/** Getters and setters can be resumed where every access that may call one is written out: when all is checked. */
function refuseUnsupported(func: Func, everything: boolean): void {
  const { node, holder, owner } = func
  const written =
    everything && holder !== null && keyName(holder) !== null && holder.key.type !== 'PrivateIdentifier'
  switch (written && func.kind !== 'constructor' ? '' : func.kind) {
    case 'getter':
      func.refuse(
        'getter',
        'a getter is called by a property access, which cannot be resumed',
        holder ?? node,
      )
      break
    case 'setter':
      func.refuse('setter', 'a setter is called by an assignment, which cannot be resumed', holder ?? node)
      break
    case 'constructor':
      func.refuse('constructor', 'a constructor is called by `new`, which cannot be resumed', holder ?? node)
      break
    case 'initializer':
      func.refuse(
        'initializer',
        'a class initializer runs inside `new` or the class definition, which cannot be resumed',
        node,
      )
      break
    default:
  }
  if (func.isAsync && func.isGenerator) {
    func.refuse('async-generator', 'an async generator has no resumable form', node)
  }
  if (holder?.type === 'MethodDefinition') {
    const decorated = [holder, ...node.params].some(({ decorators }) => (decorators?.length ?? 0) > 0)
    if (decorated) {
      func.refuse('decorator', 'a decorator may put another function in the place of the method', holder)
    }
    if (keyName(holder) === null && !isWellKnownSymbol(holder.key)) {
      func.refuse('computed-key', 'the name of the method is only known at run time', holder)
    }
    if (owner !== null && keyName(holder) !== null && isShadowed(holder, owner)) {
      func.refuse('shadowed', 'a later element of the class has the same name', holder)
    }
  }
  if (func.isArrow && func.derived && (func.usesThis || func.usesSuper || func.usesTarget)) {
    func.refuse('derived-this', 'inside a derived constructor `this` may not exist yet', node)
  }
}

/** `[Symbol.iterator]` and the like: as good as a written name. */
export function isWellKnownSymbol(key: Node): boolean {
  return (
    key.type === 'MemberExpression' &&
    !key.computed &&
    key.object.type === 'Identifier' &&
    key.object.name === 'Symbol'
  )
}

function isShadowed(holder: Node, owner: Node): boolean {
  const elements: Node[] = owner.body.body
  const own = keyName(holder)
  const after = elements.slice(elements.indexOf(holder) + 1)
  return after.some(
    other =>
      other.type === 'MethodDefinition' &&
      isFunction(other.value) &&
      other.static === holder.static &&
      other.kind === holder.kind &&
      keyName(other) === own,
  )
}

function mark({ program, funcs }: Analysis, everything: boolean): void {
  const module = markIn(program.body)
  const whole = everything || module !== undefined
  for (const func of funcs) {
    if (func.kind === 'module') continue
    const { body } = func.node
    const own = func.kind !== 'initializer' && body?.type === 'BlockStatement' ? markIn(body.body) : undefined
    func.asked = own ?? func.parent?.asked ?? module ?? null
    if (own !== undefined) func.mark = 'function'
    else if (whole) func.mark = 'module'
    else if (func.parent?.mark === 'function' || func.parent?.mark === 'inherited') func.mark = 'inherited'
  }
}

/** Where a call goes, as far as the text tells. */
function aim(call: Call, analysis: Analysis): void {
  const { bindingOf, funcOf, ownMethods } = analysis
  const { node } = call
  if (node.type === 'TaggedTemplateExpression') {
    const tag = bare(node.tag)
    const binding = tag.type === 'Identifier' ? (bindingOf.get(tag) ?? null) : null
    if (binding !== null && binding.target !== null) known(call, binding.target)
    else if (tag.type === 'MemberExpression' && isGlobal(tag.object, 'String', bindingOf))
      call.reach = 'short'
    return
  }
  const callee = bare(node.callee)
  switch (callee.type) {
    case 'Identifier': {
      const binding = bindingOf.get(callee) ?? null
      if (binding === null) {
        if (shortGlobals.has(callee.name)) call.reach = 'short'
      } else if (binding.target !== null) known(call, binding.target)
      return
    }
    case 'FunctionExpression':
    case 'ArrowFunctionExpression':
      known(call, funcOf.get(callee)!)
      return
    case 'Super':
    case 'Import':
      call.reach = 'short'
      return
    case 'MemberExpression': {
      const { object, property } = callee
      if (callee.computed || property.type !== 'Identifier') return
      if (object.type === 'Identifier' && (bindingOf.get(object) ?? null) === null) {
        const except = shortNamespaces.get(object.name)
        if (except !== undefined && !except.has(property.name)) {
          call.reach = 'short'
          return
        }
      }
      const type = typeOf(object, analysis)
      if (type !== null && isBuiltIn(type, property.name)) {
        call.reach = 'short'
        return
      }
      if (lightMethods.has(property.name) && !ownMethods.has(property.name)) call.reach = 'light'
      return
    }
    default:
  }
}

function known(call: Call, target: Func): void {
  call.target = target
  call.reach = 'known'
}

function isGlobal(node: Node, name: string, bindingOf: Analysis['bindingOf']): boolean {
  return node.type === 'Identifier' && node.name === name && (bindingOf.get(node) ?? null) === null
}

/** Tarjan: a function is recursive when a chain of known calls leads from it to itself. */
function findRecursion(funcs: Func[]): void {
  const order = new Map<Func, number>()
  const low = new Map<Func, number>()
  const stack: Func[] = []
  const onStack = new Set<Func>()
  interface Frame {
    func: Func
    targets: Func[]
    next: number
  }
  const targetsOf = (func: Func): Func[] =>
    func.calls.flatMap(({ target }) => (target === null ? [] : [target]))
  for (const start of funcs) {
    if (order.has(start)) continue
    const frames: Frame[] = [{ func: start, targets: targetsOf(start), next: 0 }]
    while (frames.length > 0) {
      const frame = frames[frames.length - 1]!
      const { func } = frame
      if (frame.next === 0 && !order.has(func)) {
        order.set(func, order.size)
        low.set(func, order.get(func)!)
        stack.push(func)
        onStack.add(func)
      }
      if (frame.next < frame.targets.length) {
        const target = frame.targets[frame.next++]!
        if (target === func) func.recursive = true
        if (!order.has(target)) frames.push({ func: target, targets: targetsOf(target), next: 0 })
        else if (onStack.has(target)) low.set(func, Math.min(low.get(func)!, order.get(target)!))
        continue
      }
      frames.pop()
      const above = frames[frames.length - 1]?.func
      if (above !== undefined) low.set(above, Math.min(low.get(above)!, low.get(func)!))
      if (low.get(func) === order.get(func)) {
        const members: Func[] = []
        for (;;) {
          const member = stack.pop()!
          onStack.delete(member)
          members.push(member)
          if (member === func) break
        }
        if (members.length > 1) for (const member of members) member.recursive = true
      }
    }
  }
}

/** Whether a call that stays a light one can be told short from its name alone. */
function isShortMethod({ node }: Call): boolean {
  return shortMethods.has(bare(node.callee).property.name)
}

function findLong(funcs: Func[]): void {
  const callers = new Map<Func, Func[]>()
  const queue: Func[] = []
  for (const func of funcs) {
    func.long =
      func.loops.length > 0 ||
      func.recursive ||
      func.calls.some(call => call.reach === 'unknown' || (call.reach === 'light' && !isShortMethod(call)))
    if (func.long) queue.push(func)
    for (const { target } of func.calls) {
      if (target === null) continue
      const list = callers.get(target)
      if (list === undefined) callers.set(target, [func])
      else list.push(func)
    }
  }
  for (let func = queue.pop(); func !== undefined; func = queue.pop()) {
    for (const caller of callers.get(func) ?? []) {
      if (caller.long) continue
      caller.long = true
      queue.push(caller)
    }
  }
}

function choose({ funcs }: Analysis, everything: boolean): void {
  for (const func of funcs) {
    if (func.kind === 'module') continue
    const refusal = func.refusals[0]
    if (func.mark === null) func.why = 'not marked'
    else if (refusal !== undefined) func.why = refusal.why
    else if (everything || func.mark === 'function') {
      func.twin = true
      func.why = everything ? 'checked' : "marked with 'use task'"
    } else if (func.long || (func.mark === 'module' && func.parent?.kind === 'module')) {
      func.twin = true
      func.why =
        func.mark === 'module'
          ? "the module is marked with 'use task'"
          : 'made inside a task, and can run long'
    } else func.why = 'cannot run long: no loop, no recursion, no unknown call'
  }
}

/** A refused function is worth a word when it was marked itself, or would stay long. */
function warn({ funcs, misplaced, bindingOf }: Analysis, reporter: Reporter, everything: boolean): void {
  for (const node of everything ? [] : misplaced) {
    reporter.warn(
      'misplaced-directive',
      "'use task' means nothing here: it must be the first statement of a function or of a module",
      node,
    )
  }
  if (!everything) warnOfUnmarked(funcs, reporter)
  for (const func of funcs) {
    if (func.twin && !everything) {
      warnOfDefaults(func, reporter)
      warnOfJobs(func, reporter)
      warnOfNew(func, funcs, bindingOf, reporter)
    }
    if (func.mark === null || func.refusals.length === 0) continue
    const { code, why, place } = func.refusals[0]!
    if (code === 'shadowed') continue
    if (everything) {
      if (code === 'internal' || func.calls.some(({ node }) => isAtomic(node, bindingOf))) {
        reporter.warn(code, `\`${func.name}\` is not checked: ${why}`, clip(place))
      }
      continue
    }
    const long =
      func.loops.length > 0 ||
      func.recursive ||
      func.calls.some(({ target }) => target?.twin === true && target.long)
    if (func.mark !== 'function' && !long && code !== 'internal') continue
    const { name, kind } = func
    const what = kind === 'initializer' ? `The ${name}` : `\`${name}\``
    const effect = func.mark === 'function' || !long ? 'stays plain' : 'can run long and stays plain'
    reporter.warn(code, `${what} ${effect}: ${why}`, {
      start: place.start,
      end: Math.min(place.end, place.start + 80),
    })
  }
}

/** Parameters are set before the resumable form can stop for the first time. */
/** What follows an `await` belongs to the event loop: a loop there that never waits is worth a word. */
function warnOfJobs({ name, loops, awaits, isAsync }: Func, reporter: Reporter): void {
  if (!isAsync || awaits.length === 0) return
  const first = Math.min(...awaits.map(({ end }) => end))
  const within = (inner: Node, outer: Node): boolean => inner.start >= outer.start && inner.end <= outer.end
  const waits = (loop: Node): boolean => awaits.some(wait => within(wait, loop))
  for (const loop of loops) {
    const around = loops.filter(other => other !== loop && within(loop, other))
    const again = around.some(waits)
    if (waits(loop) || !(loop.start >= first || again) || around.some(other => !waits(other))) continue
    const why = 'what follows an `await` is a job of the event loop, which cannot be resumed'
    reporter.warn('after-await', `A loop of \`${name}\` can run long and stays plain: ${why}`, clip(loop))
  }
}

/** `new` of a function of this file that can run long. */
function warnOfNew(func: Func, funcs: Func[], bindingOf: Analysis['bindingOf'], reporter: Reporter): void {
  for (const node of func.constructs) {
    const target = node.callee.type === 'Identifier' ? bindingOf.get(node.callee)?.target : undefined
    if (!target || !funcs.includes(target) || target.loops.length === 0) continue
    const why = 'a constructor is called by `new`, which cannot be resumed'
    reporter.warn('constructor', `\`new ${target.name}\` can run long and stays plain: ${why}`, clip(node))
  }
}

function warnOfDefaults({ name, node, calls }: Func, reporter: Reporter): void {
  const last: Node | undefined = node.params.at(-1)
  if (last === undefined) return
  const long = calls.find(
    ({ node: { start }, target }) =>
      start < last.end && start >= node.params[0].start && target?.twin && target.long,
  )
  if (long === undefined) return
  const why = 'a parameter is set before the function can stop for the first time'
  reporter.warn(
    'parameter-default',
    `A default of \`${name}\` can run long and stays plain: ${why}`,
    clip(long.node),
  )
}

function clip({ start, end }: { start: number; end: number }): { start: number; end: number } {
  return { start, end: Math.min(end, start + 80) }
}

/** True for a call of `Atomics`. */
function isAtomic(node: Node, bindingOf: Analysis['bindingOf']): boolean {
  const callee = node.callee === undefined ? null : bare(node.callee)
  return callee?.type === 'MemberExpression' && isGlobal(callee.object, 'Atomics', bindingOf)
}

/** A task that calls a function of this file which loops and is not marked cannot be stopped while that one runs. */
function warnOfUnmarked(funcs: Func[], reporter: Reporter): void {
  const told = new Set<Func>()
  for (const func of funcs) {
    if (!func.twin) continue
    for (const { target, node } of func.calls) {
      if (target === null || target.mark !== null || told.has(target)) continue
      if (target.loops.length === 0 && !target.recursive) continue
      told.add(target)
      const what = `\`${target.name}\` can run long and is not marked, so \`${func.name}\` cannot be preempted inside it`
      reporter.warn('unmarked', `${what}: begin it with 'use task'`, clip(node))
    }
  }
}
