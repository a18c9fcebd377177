/** A test of another pool that is not run against ours: it tests internals, not behaviour. */
export interface Exclusion {
  readonly file: string
  /** The name of the test; without one, the whole file. */
  readonly test?: string
  readonly reason: string
}

const changed = (what: string): string => `of version 4; in version 5, whose interface ours is, ${what}`
const histograms = changed('runTime and waitTime are in `histogram`')
const drain = changed("'drain' follows the use of the workers, and not the length of the queue")

/** Version 5 has none. The files of version 4 have other names. */
export const piscinaExclusions: readonly Exclusion[] = [
  {
    file: 'histogram.ts',
    test: 'pool will maintain run and wait time histograms by default',
    reason: histograms,
  },
  {
    file: 'histogram.ts',
    test: 'pool will maintain run and wait time histograms when recordTiming is true',
    reason: histograms,
  },
  {
    file: 'histogram.ts',
    test: 'pool does not maintain run and wait time histograms when recordTiming is false',
    reason: histograms,
  },
  {
    file: 'option-validation.ts',
    test: 'useAtomics must be a boolean',
    reason: changed('useAtomics is `atomics`'),
  },
  {
    file: 'pool-close.ts',
    test: 'close()',
    reason: changed("a pool that closes says 'queue is being terminated'"),
  },
  { file: 'post-task.ts', test: 'Piscina emits drain', reason: drain },
  {
    file: 'post-task.ts',
    test: 'Piscina exposes/emits needsDrain to true when capacity is exceeded',
    reason: drain,
  },
  { file: 'simple-test.ts', test: 'Piscina is exposed on export', reason: changed('`version` is 5') },
  {
    file: 'test-uncaught-exception-from-handler.ts',
    test: 'uncaught exception in immediate after task yields error event',
    reason: changed('useAtomics is `atomics`'),
  },
]

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
      'cancels 50 ms after the pool is made, before the worker has started: the task never begins, so none of its listeners can fail, and the worker stays',
  },
]
