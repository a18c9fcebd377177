/** Where values come from: a database, another service. Each load costs. */
export type Load = (key: string) => Promise<string>

export interface Cache {
  get(key: string): Promise<string>
}

/**
 * Remembers a value when it has come. Until then every reader finds nothing, and loads it too: a stampede.
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

/**
 * Remembers the promise: readers that come meanwhile wait for the same load. A load that fails is forgotten.
 */
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
