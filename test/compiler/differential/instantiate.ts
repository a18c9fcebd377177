/**
 * Modules as functions: each call makes a new instance. It needs no compiler, so that any Node can run it.
 */

/** A module's exports, by name. Getters, so that bindings stay live. */
export type Namespace = Record<string, any>

export type Instantiate = (modules: Record<string, Namespace>) => Namespace

export interface ModuleText {
  /** An ES module as the body of a function, or a CommonJS module as it is. */
  readonly kind: 'module' | 'script'
  readonly file: string
  readonly body: string
}

export function instantiatorOf({ kind, file, body }: ModuleText): Instantiate {
  const text = `${body}\n//# sourceURL=${file}`
  // oxlint-disable-next-line no-new-func
  if (kind === 'module') return new Function('__modules', text) as Instantiate
  // oxlint-disable-next-line no-new-func
  const wrapper = new Function('module', 'exports', 'require', text)
  return modules => {
    const module = { exports: {} as Namespace }
    wrapper.call(module.exports, module, module.exports, (specifier: string) => modules[specifier]!)
    return module.exports
  }
}
