/**
 * The errors of the futex calls, by their Linux numbers. The calls with the interface of the system call
 * return them negated.
 */
export const EPERM = 1
export const ESRCH = 3
export const EINTR = 4
export const EAGAIN = 11
export const EFAULT = 14
export const EBUSY = 16
export const EINVAL = 22
export const EDEADLK = 35
export const ENOSYS = 38
export const ETIMEDOUT = 110
export const EOWNERDEAD = 130
export const ENOTRECOVERABLE = 131

const names = new Map<number, [code: string, text: string]>([
  [EPERM, ['EPERM', 'the caller does not hold the lock']],
  [ESRCH, ['ESRCH', 'the owner named in the word does not exist']],
  [EINTR, ['EINTR', 'interrupted']],
  [EAGAIN, ['EAGAIN', 'the word did not hold the expected value']],
  [EFAULT, ['EFAULT', 'the word is not in a mapped SharedArrayBuffer']],
  [EINVAL, ['EINVAL', 'an argument is not valid for this operation']],
  [EBUSY, ['EBUSY', 'the lock is held']],
  [EDEADLK, ['EDEADLK', 'the caller would wait for itself']],
  [ENOSYS, ['ENOSYS', 'no such operation']],
  [ETIMEDOUT, ['ETIMEDOUT', 'timed out']],
  [EOWNERDEAD, ['EOWNERDEAD', 'the last owner died with the lock']],
  [ENOTRECOVERABLE, ['ENOTRECOVERABLE', 'the data that the lock guards was given up']],
])

/**
 * The errors of the typed methods. Like Node's system errors they have a `code`, a `syscall` and a negative
 * `errno`.
 */
export class FutexError extends Error {
  override readonly name = 'FutexError'
  readonly code: string
  readonly errno: number
  readonly syscall: string

  constructor(errno: number, syscall: string, detail?: string) {
    const [code, text] = names.get(errno) ?? [`E${errno}`, 'unknown error']
    super(`${code}: ${detail ?? text}, ${syscall}`)
    this.code = code
    this.errno = -errno
    this.syscall = syscall
  }
}
