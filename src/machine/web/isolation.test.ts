import { afterEach, expect, test, vi } from 'vitest'
import { requireSharedMemory, requireWaitAsync } from './isolation.ts'

afterEach(() => vi.unstubAllGlobals())

test('what needs shared memory is refused on a page that is not isolated, with the headers that isolate it', () => {
  expect(() => requireSharedMemory('Kernel.boot')).not.toThrow()
  vi.stubGlobal('crossOriginIsolated', false)
  expect(() => requireSharedMemory('Kernel.boot')).toThrow(
    /^Kernel\.boot: .*Cross-Origin-Opener-Policy.*Document-Isolation-Policy/,
  )
  vi.stubGlobal('crossOriginIsolated', undefined)
  vi.stubGlobal('SharedArrayBuffer', undefined)
  expect(() => requireSharedMemory('new Mutex')).toThrow(/^new Mutex: the page has no shared memory/)
})

test('a browser that is too old is named as that', () => {
  expect(() => requireWaitAsync('Kernel.boot')).not.toThrow()
  vi.stubGlobal('Atomics', {})
  expect(() => requireWaitAsync('Kernel.boot')).toThrow(
    /^Kernel\.boot: this browser has no Atomics\.waitAsync/,
  )
})
