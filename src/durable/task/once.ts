import { type Blocking, blocking, waitForm } from '../../coroutine/core/blocking.ts'
import { isThenable } from '../../coroutine/core/thenable.ts'
import { within } from '../../coroutine/core/within.ts'
import { imageToBytes } from '../../payload/imagebytes.ts'
import { checkName } from '../names.ts'
import { decodeValue } from '../outcome.ts'
import { askWorkerForm, checkTask } from './asking.ts'
import type { Stored } from './questions.ts'

/** With the id of its run in one index. */
const KEY_BYTES_MAX = 1500

/**
 * Runs `fn` for an effect outside of the run, and stores its result under `key`. Every later attempt of the
 * run gets the stored result, and does not run `fn`. A worker that dies between the effect and the store
 * leaves the effect done and no result: `fn` runs again, so give `key` to the other side. If `fn` throws,
 * nothing is stored. `fn` may return a promise. No checkpoint is taken inside it.
 */
export const once: <T>(key: string, fn: () => T) => Blocking<Awaited<T>> = blocking(
  'once',
  function* (key: string, fn: () => unknown) {
    checkName('once(key, fn)', key, 1000, KEY_BYTES_MAX)
    if (typeof fn !== 'function')
      throw new TypeError(`once('${key}', fn): fn is ${typeof fn}; give a function`)
    const call = `once('${key}')`
    const before = yield* askWorkerForm<Stored>(call, { call: 'journaled', key })
    if (before.value !== null) return decodeValue(before.value, `the result of ${call}`)
    const made = yield* within(fn, [])
    const result = isThenable(made) ? yield* waitForm(made) : made
    const value = imageToBytes(result, call)
    const stored = yield* askWorkerForm<Stored>(call, { call: 'journal', key, value })
    return decodeValue(stored.value!, `the result of ${call}`)
  },
  checkTask,
) as never
