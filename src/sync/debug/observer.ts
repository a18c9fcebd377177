import type { ObjectWords } from '../wait/objectwords.ts'

/**
 * Is called when locks are locked, waited for and unlocked: debug mode. Fast paths only check whether it is
 * null.
 */
export interface LockObserver {
  acquired(words: ObjectWords, kind: string, name: string | undefined, tid: number): void
  released(words: ObjectWords, tid: number): void
  /** Throws when the wait would complete a deadlock. */
  waits(words: ObjectWords, kind: string, name: string | undefined, tid: number): void
  waited(words: ObjectWords, tid: number): void
}

export let observer: LockObserver | null = null

export function setObserver(next: LockObserver | null): void {
  observer = next
}

let onMade: (() => void) | null = null

/** An object was created or received on this thread. */
export function tellMade(): void {
  onMade?.()
}

export function setOnMade(listener: () => void): void {
  onMade = listener
}
