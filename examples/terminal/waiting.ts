/** Shows on a terminal what a person waits for, and for how long, until the promise settles. */
export async function waiting<T>(text: string, promise: PromiseLike<T>): Promise<T> {
  if (!process.stdout.isTTY) return await promise
  const from = performance.now()
  const show = (): void => {
    process.stdout.write(`\r\x1b[K… ${text}: ${((performance.now() - from) / 1000).toFixed(1)} s`)
  }
  const timer = setInterval(show, 100)
  try {
    return await promise
  } finally {
    clearInterval(timer)
    process.stdout.write('\r\x1b[K')
  }
}
