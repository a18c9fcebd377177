import type { ObjectWords } from '../wait/objectwords.ts'

/**
 * Who hears of locks being taken, waited for and let go: debug mode. Null is the ordinary case, and all that
 * fast paths look at.
 */
export interface LockObserver {
  acquired(place: ObjectWords, kind: string, name: string | undefined, tid: number): void
  released(place: ObjectWords, tid: number): void
  /** Throws where waiting would close a circle. */
  waits(place: ObjectWords, kind: string, name: string | undefined, tid: number): void
  waited(place: ObjectWords, tid: number): void
}

export let observer: LockObserver | null = null

export function setObserver(next: LockObserver | null): void {
  observer = next
}

let onMade: (() => void) | null = null

/** An object was made or has arrived on this thread. */
export function tellMade(): void {
  onMade?.()
}

export function setOnMade(listener: () => void): void {
  onMade = listener
}
