/**
 * The checker runtime's functions that record more than steps, for tests that only compare the behaviour of
 * programs.
 */
import { refuse } from '../../../src/compiler/runtime.ts'

const same = (value: unknown): unknown => value

export const unwatched: Record<string, (...args: any[]) => unknown> = {
  plain: (fn: unknown, self: unknown, args: unknown[], text: string) =>
    typeof fn === 'function' ? Reflect.apply(fn, self, args) : refuse(text),
  given: (_maker: unknown, args: unknown[]) => args,
  waited: () => 0,
  unawaited: (_before: number, result: unknown) => result,
  peek: same,
  poke: same,
  tagged: same,
  called: same,
  calls: same,
  uses: same,
  through: same,
  primitive: same,
  within: same,
  unproxied: same,
  kind: same,
  parts: same,
}
