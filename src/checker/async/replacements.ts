/** Properties that are replaced while executions run, and restored afterwards. */
export class Replacements {
  private readonly entries: { owner: object; name: PropertyKey; value: unknown }[] = []
  private readonly restore: (() => void)[] = []

  add(owner: unknown, name: PropertyKey, value: unknown): void {
    if ((typeof owner !== 'object' && typeof owner !== 'function') || owner === null) return
    if (name in owner) this.entries.push({ owner, name, value })
  }

  install(): void {
    for (const { owner, name, value } of this.entries) {
      const before = Object.getOwnPropertyDescriptor(owner, name)
      if (before !== undefined && !before.configurable && before.writable !== true) continue
      const enumerable = before?.enumerable ?? false
      if (before?.configurable === false) Reflect.set(owner, name, value)
      else Object.defineProperty(owner, name, { value, writable: true, configurable: true, enumerable })
      this.restore.push(() => {
        if (before === undefined) Reflect.deleteProperty(owner, name)
        else if (before.configurable) Object.defineProperty(owner, name, before)
        else Reflect.set(owner, name, before.value)
      })
    }
  }

  remove(): void {
    while (this.restore.length > 0) this.restore.pop()?.()
  }
}
