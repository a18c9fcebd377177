import type { Handoff } from './handoff.ts'

let source: () => Handoff | null = () => null

/**
 * The hand-off tables of the kernel that this thread is in, or null: then a lock has nobody to give hints to,
 * and waits plainly.
 */
export function handoffHere(): Handoff | null {
  return source()
}

/** What `handoffHere` answers on this thread: a kernel sets it. */
export function setHandoffHere(next: (() => Handoff | null) | null): void {
  source = next ?? (() => null)
}
