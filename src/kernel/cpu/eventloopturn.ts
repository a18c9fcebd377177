const setImmediate = (globalThis as { setImmediate?: (callback: () => void) => unknown }).setImmediate

/** Resolves after the event loop has gone round once, with whatever it had to deliver. */
export function turn(): Promise<void> {
  return new Promise(resolve => {
    if (setImmediate === undefined) setTimeout(resolve, 0)
    else setImmediate(resolve)
  })
}
