import { coroutineOf, PREEMPTED, SUSPENDED } from './coroutine.ts'

/** Runs a function of any kind inside this generator, and yields its suspensions. */
export function* within(
  fn: (...args: any[]) => unknown,
  args: readonly unknown[],
): Generator<number, unknown, unknown> {
  const inner = coroutineOf(fn, [...args])
  let isDone = inner.start()
  while (!isDone) {
    let sent: unknown
    try {
      sent = yield inner.state === 'suspended' ? SUSPENDED : PREEMPTED
    } catch (error) {
      isDone = inner.raise(error)
      continue
    }
    isDone = inner.resume(sent)
  }
  if (inner.state === 'threw') throw inner.result
  return inner.result
}
