/** One step of the path to a value: a property name, an index, or, below zero, an entry of a Map or a Set. */
export type PathStep = number | string

/** The step to the key of the entry at `index`. */
export function keyStep(index: number): PathStep {
  return -1 - index * 2
}

/** The step to the value of the entry at `index`. */
export function valueStep(index: number): PathStep {
  return -2 - index * 2
}

/**
 * A value that cannot travel. The message starts with the path and the kind of value:
 * `args[0].options.onDone: a function cannot travel to another thread`.
 */
export class UntravelableError extends TypeError {
  readonly code = 'ERR_HEDDLE_UNTRAVELABLE'
  readonly path: string

  constructor(path: string, what: string, advice: string) {
    super(`${path}: ${what} cannot travel to another thread${advice === '' ? '' : `; ${advice}`}`)
    this.path = path
  }
}

Object.defineProperty(UntravelableError.prototype, 'name', {
  value: 'TypeError',
  writable: true,
  configurable: true,
})

/** Whether the stack was full: V8 and JavaScriptCore, or SpiderMonkey. */
export function isStackOverflow(error: unknown): boolean {
  return error instanceof Error && /^Maximum call stack size exceeded|^too much recursion/.test(error.message)
}

const identifier = /^[A-Za-z_$][\w$]*$/

/**
 * Formats a path as an expression: `args[0].options["on done"]`. `mapKeys` holds the keys of the Maps on the
 * path.
 */
export function formatPath(root: string, steps: readonly PathStep[], mapKeys: readonly unknown[]): string {
  let path = root
  for (const [depth, step] of steps.entries()) {
    if (typeof step === 'string' && identifier.test(step)) path += path === '' ? step : `.${step}`
    else if (typeof step === 'string') path += `[${JSON.stringify(step)}]`
    else if (step >= 0) path += `[${step}]`
    else path += formatEntry(-1 - step, mapKeys[depth])
  }
  return path
}

function formatEntry(step: number, key: unknown): string {
  if (step % 2 === 0) return `.keys()[${step / 2}]`
  return typeof key === 'string' ? `.get(${JSON.stringify(key)})` : `.values()[${(step - 1) / 2}]`
}

/** The kind of a value in a message: "a function", "a WeakMap". */
export function describe(value: unknown): string {
  if (typeof value === 'function') return 'a function'
  if (typeof value === 'symbol') return 'a symbol'
  const name = Object.prototype.toString.call(value).slice(8, -1)
  return name === 'Object' ? 'this object' : `${/^[AEIO]/.test(name) ? 'an' : 'a'} ${name}`
}

/** Why a value cannot travel, as a text with its path. */
export function reasonInWords(path: string, refusal: unknown): string {
  let text: string
  try {
    if (refusal instanceof UntravelableError) return refusal.message
    text = String(refusal)
  } catch {
    text = 'an error that cannot be shown'
  }
  return `${path}: it cannot be read: ${text}`
}

/** Replaces a thrown value that cannot travel. */
export function failureInWords(thrown: unknown, refusal: unknown): Error {
  let kind: string
  try {
    kind = describe(thrown)
  } catch {
    kind = 'an object'
  }
  return new TypeError(`the task threw ${kind}, which cannot travel (${reasonInWords('error', refusal)})`)
}
