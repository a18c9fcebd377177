import { pending, realOf } from '../machine/pending.ts'
import { refuse } from './refusal.ts'
import { kindOf } from '../machine/views.ts'

/**
 * The language copies elements of one type byte by byte. Under `memory: 'weak'` each may be torn, which one
 * step per element does not show. So such a copy is refused there, with its place. `other`: what the call
 * copies to or from, if its type decides.
 */
export function refuseTornCopy(view: unknown, call: string, other?: unknown): void {
  if (!pending.weak) return
  const real = realOf(view) as Uint8Array
  if (real.BYTES_PER_ELEMENT === 1) return
  if (other !== undefined && (!ArrayBuffer.isView(realOf(other)) || kindOf(realOf(other)) !== kindOf(real)))
    return
  refuse(
    `${call} copied elements of shared memory byte by byte, in a check with \`memory: 'weak'\``,
    'Copy them one by one, in a loop or by a spread',
  )
}
