/** The directives that mark a function or a module, and the lowering that they name. */
import { directives, type Node } from './syntax.ts'

export type LoweringName = 'frames' | 'generator'

/** `'use task'`, with or without a word behind it: a lowering, or `movable`. */
export function isTaskDirective(directive: unknown): boolean {
  return (
    directive === 'use task' ||
    directive === 'use task frames' ||
    directive === 'use task generator' ||
    directive === 'use task movable'
  )
}

/** Whether the directive of a body asks for a movable function; undefined without a directive. */
export function movableIn(body: Node[]): boolean | undefined {
  for (const { directive } of directives(body)) {
    if (isTaskDirective(directive)) return directive === 'use task movable'
  }
  return undefined
}

/**
 * The lowering that the directive of a body names, or null if it names none; undefined without a directive.
 */
export function markIn(body: Node[]): LoweringName | null | undefined {
  for (const { directive } of directives(body)) {
    if (!isTaskDirective(directive)) continue
    return directive === 'use task frames' || directive === 'use task movable'
      ? 'frames'
      : directive === 'use task generator'
        ? 'generator'
        : null
  }
  return undefined
}
