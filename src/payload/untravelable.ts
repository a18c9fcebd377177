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
  return name === 'Object' ? 'this object' : `${/^[AEIOU]/.test(name) ? 'an' : 'a'} ${name}`
}

/**
 * Replaces a thrown value that cannot travel: the same error with its cause as text, or an error about the
 * value.
 */
export function failureInWords(thrown: unknown, refusal: UntravelableError): Error {
  if (!(thrown instanceof Error)) {
    return new TypeError(`the task threw ${describe(thrown)}, which cannot travel (${refusal.message})`, {
      cause: refusal,
    })
  }
  const { message, stack, name } = thrown
  const copy = new Error(message, { cause: `(${refusal.message})` })
  Object.setPrototypeOf(copy, Object.getPrototypeOf(thrown) as object)
  Object.defineProperty(copy, 'stack', { value: stack, configurable: true, writable: true })
  if (copy.name !== name)
    Object.defineProperty(copy, 'name', { value: name, configurable: true, writable: true })
  return copy
}
