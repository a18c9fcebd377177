const setImmediate = (globalThis as { setImmediate?: (callback: () => void) => unknown }).setImmediate

/** Resolves after one turn of the event loop, when its callbacks have run. */
export function turn(): Promise<void> {
  return new Promise(resolve => {
    if (setImmediate === undefined) setTimeout(resolve, 0)
    else setImmediate(resolve)
  })
}
