/** A test of another pool that is not run against ours: about what it is made of, and not about what it does. */
export interface Exclusion {
  readonly file: string
  /** Its name; without one, the whole file. */
  readonly test?: string
  readonly reason: string
}

export const piscinaExclusions: readonly Exclusion[] = []

const processes =
  "about workerType: 'process', which is refused: the workers are CPUs of a kernel, which are threads"
const pool = 'Pool.test.js'
const environment = 'environment.test.js'
const isNode = 'about a function of its own that tells Node from browsers'

/** mocha's full titles. */
export const workerpoolExclusions: readonly Exclusion[] = [
  {
    file: 'WorkerHandler.test.js',
    reason: 'about its own class for a worker, its processes and its messages',
  },
  { file: 'debug-port-allocator-test.js', reason: 'about the debugger ports of its processes' },
  { file: environment, test: 'Environment Detection is platform assigned to be browser', reason: isNode },
  { file: environment, test: 'Environment Detection is platform assigned to be node', reason: isNode },
  {
    file: environment,
    test: 'Main Thread Detection should detect isMainThread in child_process',
    reason: processes,
  },
  { file: pool, test: 'Pool nodeWorker supports process', reason: processes },
  { file: pool, test: 'Pool supports forkOpts parameter to pass options to fork', reason: processes },
  {
    file: pool,
    test: 'Pool supports worker creation hook to pass dynamic options to fork (for example)',
    reason: processes,
  },
  { file: pool, test: 'Pool supports stdout/stderr capture via fork', reason: processes },
  { file: pool, test: 'Pool excludes stdout/stderr capture via fork', reason: processes },
  { file: pool, test: 'Pool should wait until subprocesses have ended', reason: processes },
  { file: pool, test: 'Pool abort handler should trigger event stdout in abort handler', reason: processes },
  { file: pool, test: 'Pool abort handler should trigger event in abort handler', reason: processes },
  { file: pool, test: 'Pool validate should not allow unknown properties in forkOpts', reason: processes },
  { file: pool, test: 'Pool validate should not allow inherited properties in forkOpts', reason: processes },
  {
    file: pool,
    test: 'Pool abort handler should invoke timeout for abort handler if timeout period is reached with Cancellation',
    reason:
      'cancels 50 ms after it has made the pool, before the worker has started: the task never begins, so that no listener of it can fail, and the worker stays',
  },
]
