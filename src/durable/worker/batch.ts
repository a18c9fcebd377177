/**
 * Collects items while a write is under way, and writes them together. Under load a commit then serves many
 * runs; alone, an item waits for nothing.
 */
export class Batch<I, R> {
  private readonly write: (items: readonly I[]) => Promise<readonly R[]>
  private readonly most: number
  private waiting: { readonly item: I; resolve(result: R): void; reject(error: unknown): void }[] = []
  private isWriting = false

  /** `write` returns a result for each item, in their order. `most`: the most items of one write. */
  constructor(write: (items: readonly I[]) => Promise<readonly R[]>, most: number) {
    this.write = write
    this.most = most
  }

  add(item: I): Promise<R> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ item, resolve, reject })
      if (!this.isWriting) void this.run()
    })
  }

  private async run(): Promise<void> {
    this.isWriting = true
    // The items of this turn of the event loop go together.
    await new Promise(resolve => setImmediate(resolve))
    while (this.waiting.length > 0) await this.writeSome(this.waiting.splice(0, this.most))
    this.isWriting = false
  }

  private async writeSome(some: typeof this.waiting): Promise<void> {
    try {
      const results = await this.write(some.map(({ item }) => item))
      some.forEach(({ resolve }, index) => resolve(results[index]!))
    } catch (error) {
      if (some.length === 1) return some[0]!.reject(error)
      // One item may be what the database refuses: each alone.
      for (const one of some) await this.writeSome([one])
    }
  }
}
