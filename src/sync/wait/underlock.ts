import { isFault } from '../../arena/sync/section.ts'

/**
 * Runs `body` with a lock held, and unlocks. After a fault the lock stays locked: what it guards may be half
 * changed, and recovery breaks the lock.
 */
export function underLock<T>(body: () => T, unlock: () => void): T {
  let result: T
  try {
    result = body()
  } catch (error) {
    if (!isFault(error)) unlock()
    throw error
  }
  unlock()
  return result
}
