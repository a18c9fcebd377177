/**
 * Mail: messages between the thread that created the machine and its CPUs, for objects that shared memory
 * cannot hold: ports, and other objects that only `postMessage` transfers. Mail shares the CPU's port with
 * the messages of the program. The envelope distinguishes them.
 *
 *   controller                              CPU
 *   ----------                              ---
 *   (A) mail++
 *   (B) posts, kicks                        (C) mail is not 0: runs its event loop, or takes the message
 *                                               from its port
 *                                           (D) mail--
 *
 * (A) before (B): a CPU that is about to halt sees that a message is pending, and does not block.
 */
export interface Envelope {
  readonly heddleMail: unknown
}

export function sealed(message: unknown): Envelope {
  return { heddleMail: message }
}

export function isMail(message: unknown): message is Envelope {
  return typeof message === 'object' && message !== null && Object.hasOwn(message, 'heddleMail')
}
