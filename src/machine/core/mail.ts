/**
 * Messages between the thread that made the machine and its CPUs, for what shared memory cannot hold: ports,
 * and all else that only `postMessage` carries. They share a CPU's own port with the messages of the program,
 * and are told apart by their envelope.
 *
 *   controller                              CPU
 *   ----------                              ---
 *   (A) mail++
 *   (B) posts, kicks                        (C) mail is not 0: lets its event loop turn, or takes the message off its port
 *                                           (D) mail--
 *
 * (A) before (B): a CPU that is about to halt sees that something is on its way, and does not block.
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
