/**
 * The tag of a lock: a hash of the position of its word, the same on every thread; never 0. Its low bits
 * choose the bucket.
 */
export function lockTag(owner: number, index: number): number {
  let hash = Math.imul(owner ^ 0x9e37_79b9, 0x85eb_ca6b) ^ index
  hash = Math.imul(hash ^ (hash >>> 15), 0xc2b2_ae35)
  hash ^= hash >>> 13
  return hash === 0 ? 1 : hash | 0
}
