export type Session = Readonly<Record<string, string>>

/** A remote store that reads and writes whole sessions; every call takes a while. */
export interface Store {
  read(id: string): Promise<Session>
  write(id: string, session: Session): Promise<void>
}

export interface Sessions {
  set(id: string, key: string, value: string): Promise<void>
}

/** Reads the session, changes it, writes it back: of two concurrent requests, one loses its change. */
export class PlainSessions implements Sessions {
  private readonly store: Store

  constructor(store: Store) {
    this.store = store
  }

  async set(id: string, key: string, value: string): Promise<void> {
    const session = await this.store.read(id)
    await this.store.write(id, { ...session, [key]: value })
  }
}

/** The same with a queue for each session: a change begins when the previous one has succeeded or failed. */
export class QueuedSessions implements Sessions {
  private readonly store: Store
  private readonly last = new Map<string, Promise<void>>()

  constructor(store: Store) {
    this.store = store
  }

  async set(id: string, key: string, value: string): Promise<void> {
    const before = this.last.get(id) ?? Promise.resolve()
    const change = before.then(async () => {
      const session = await this.store.read(id)
      await this.store.write(id, { ...session, [key]: value })
    })
    const done = change.catch(() => undefined)
    this.last.set(id, done)
    await change
    if (this.last.get(id) === done) this.last.delete(id)
  }
}
