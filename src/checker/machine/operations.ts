/**
 * The kinds of operation that instrumented code yields. The compiler writes the numbers into its output, so
 * they are fixed: add a new kind at the end.
 */
export const PLAIN_READ = 0
export const PLAIN_WRITE = 1
export const LOAD = 2
export const STORE = 3
export const ADD = 4
export const SUB = 5
export const AND = 6
export const OR = 7
export const XOR = 8
export const EXCHANGE = 9
export const COMPARE_EXCHANGE = 10
/** a: the value expected, b: the timeout in milliseconds, or undefined. */
export const WAIT = 11
/** a: how many to wake, or undefined for all. */
export const NOTIFY = 12
export const WAIT_ASYNC = 13
/** view: the awaited value. */
export const AWAIT = 14
/** index: the byte offset, b: `[method, littleEndian]`. */
export const DATAVIEW_READ = 15
export const DATAVIEW_WRITE = 16
/** 17 and 18 are free: an operation on many elements takes one step for each. */
export const PAUSE = 19
/** The checker's own mutex. view: the mutex. */
export const LOCK = 20
export const UNLOCK = 21
/** Memory that an allocator frees or allocates. a: the number of elements from `index`. */
export const FREE = 22
export const ALLOCATE = 23
/** Never yielded by code: the timeout of a sleeper, and the death of a thread. */
export const RESUME = 24
export const CRASH = 25
/** The length of a buffer that can grow, or of a view that grows with it. a: the name of the property. */
export const LENGTH = 26
/** a: the new length in bytes. */
export const GROW = 27

export const KIND_NAMES: readonly string[] = [
  'read',
  'write',
  'load',
  'store',
  'add',
  'sub',
  'and',
  'or',
  'xor',
  'exchange',
  'compareExchange',
  'wait',
  'notify',
  'waitAsync',
  'await',
  'read',
  'write',
  '',
  '',
  'pause',
  'lock',
  'unlock',
  'free',
  'allocate',
  'wake up',
  'die',
  'length',
  'grow',
]
