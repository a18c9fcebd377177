/** The source of the values: a database, another service. Each load is expensive. */
export type Load = (key: string) => Promise<string>

export interface Cache {
  get(key: string): Promise<string>
}

/**
 * Stores a value when it has been loaded. Until then every reader finds nothing and loads it too: a stampede.
 */
export class EagerCache implements Cache {
  private readonly values = new Map<string, string>()
  private readonly load: Load

  constructor(load: Load) {
    this.load = load
  }

  async get(key: string): Promise<string> {
    const known = this.values.get(key)
    if (known !== undefined) return known
    const value = await this.load(key)
    this.values.set(key, value)
    return value
  }
}

/** Stores the promise: later readers wait for the same load. A failed load is removed. */
export class PatientCache implements Cache {
  private readonly values = new Map<string, Promise<string>>()
  private readonly load: Load

  constructor(load: Load) {
    this.load = load
  }

  async get(key: string): Promise<string> {
    const known = this.values.get(key)
    if (known !== undefined) return await known
    const value = this.load(key)
    this.values.set(key, value)
    try {
      return await value
    } catch (error) {
      if (this.values.get(key) === value) this.values.delete(key)
      throw error
    }
  }
}
