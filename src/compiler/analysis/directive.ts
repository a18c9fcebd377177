/** What marks a function or a module, and by which lowering it asks to be made resumable. */
import { directives, type Node } from './syntax.ts'

/** By unwinding, or as a generator. */
export type LoweringName = 'frames' | 'generator'

/** `'use task'`, with or without the name of a lowering behind it. */
export function isTaskDirective(directive: unknown): boolean {
  return directive === 'use task' || directive === 'use task frames' || directive === 'use task generator'
}

/**
 * The directive that marks a body: which lowering it names, null when it names none; undefined when there is
 * none.
 */
export function markIn(body: Node[]): LoweringName | null | undefined {
  for (const { directive } of directives(body)) {
    if (!isTaskDirective(directive)) continue
    return directive === 'use task frames'
      ? 'frames'
      : directive === 'use task generator'
        ? 'generator'
        : null
  }
  return undefined
}
