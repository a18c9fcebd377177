/** What `heddle view` and `heddle run --view` share. */
export function addressLine(url: string): string {
  return `heddle view: ${url}\n`
}

/** Resolves when the user ends the command. */
export function interrupted(): Promise<void> {
  return new Promise(resolve => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => resolve())
  })
}
