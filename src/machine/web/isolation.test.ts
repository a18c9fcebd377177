import { afterEach, expect, test, vi } from 'vitest'
import { requireSharedMemory, requireWaitAsync } from './isolation.ts'

afterEach(() => vi.unstubAllGlobals())

test('without isolation a call that needs shared memory is refused, and the error lists the headers to set', () => {
  expect(() => requireSharedMemory('Kernel.boot')).not.toThrow()
  vi.stubGlobal('crossOriginIsolated', false)
  expect(() => requireSharedMemory('Kernel.boot')).toThrow(
    /^Kernel\.boot: .*Cross-Origin-Opener-Policy.*Document-Isolation-Policy/,
  )
  vi.stubGlobal('crossOriginIsolated', undefined)
  vi.stubGlobal('SharedArrayBuffer', undefined)
  expect(() => requireSharedMemory('new Mutex')).toThrow(/^new Mutex: the page has no shared memory/)
})

test('the error for a browser that is too old says so', () => {
  expect(() => requireWaitAsync('Kernel.boot')).not.toThrow()
  vi.stubGlobal('Atomics', {})
  expect(() => requireWaitAsync('Kernel.boot')).toThrow(
    /^Kernel\.boot: this browser has no Atomics\.waitAsync/,
  )
})
