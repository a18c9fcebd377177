/**
 * Ways to call an async function without awaiting it at the call. `save` loads, waits and stores; each way
 * calls it twice.
 */
export type Save = () => Promise<void>
export interface Way {
  readonly way: string
  readonly run: (save: Save) => any
}

const { then: taken } = Promise.prototype

/** A promise that is resolved with this object calls its `then`. */
const thenable = (save: Save): object => Object.fromEntries(['then'].map(key => [key, () => void save()]))

const way = (name: string, run: Way['run']): Way => ({ way: name, run })

/** The two calls run concurrently: each of these is refused. */
export const beside: readonly Way[] = [
  way('a function that returns the call', save => {
    const later = () => save()
    later()
    later()
  }),
  way('a declared function', save => {
    function inner() {
      return save()
    }
    function later() {
      return inner()
    }
    later()
    later()
  }),
  way('a branch', save => {
    const later = (yes: boolean) => (yes ? save() : undefined)
    later(true)
    later(true)
  }),
  way('a catch clause', save => {
    const later = () => {
      try {
        throw new Error('always')
      } catch {
        return save()
      }
    }
    void later()
    void later()
  }),
  way('a method', save => {
    const store = { later: () => save() }
    store.later()
    store.later()
  }),
  way('a private method', save => {
    class Store {
      #later() {
        return save()
      }
      both() {
        this.#later()
        this.#later()
      }
    }
    new Store().both()
  }),
  way('a method of the base class', save => {
    class Base {
      later() {
        return save()
      }
    }
    class Store extends Base {
      both() {
        super.later()
        super.later()
      }
    }
    new Store().both()
  }),
  way('an optional call', save => {
    const store: { later?: Save } = { later: () => save() }
    store.later?.()
    store?.later?.()
  }),
  way('parentheses around a chain', save => {
    const store: { later?: Save } = { later: async () => await save() }
    store?.later!()
    store?.later!()
  }),
  way('a getter', save => {
    const store = {
      get later() {
        return save()
      },
    }
    return [store.later, store.later].length
  }),
  way('a template', save => {
    const later = (text: TemplateStringsArray) => (text.length > 0 ? save() : undefined)
    void later`once`
    void later`twice`
  }),
  way('call and apply', save => {
    const later = () => save()
    later.call(null)
    later.apply(null, [])
  }),
  way('call of the async function', save => {
    save.call(null)
    save.apply(null)
  }),
  way('bind', save => {
    const plain = () => save()
    const later = plain.bind(null)
    later()
    later()
  }),
  way('Reflect.apply', save => {
    const later = () => save()
    Reflect.apply(later, null, [])
    Reflect.apply(later, null, [])
  }),
  way('forEach', save => [1, 2].forEach(() => save())),
  way('map', save => [1, 2].map(() => save()).length),
  way('an awaited map', async save => void (await [1, 2].map(() => save()))),
  way('Promise.all', async save => void (await Promise.all([1, 2].map(() => save())))),
  way('Map.forEach', save => new Map([1, 2].map(x => [x, x])).forEach(() => save())),
  way('Array.from', save => Array.from([1, 2], () => save()).length),
  way('replace', save => 'ab'.replace(/./g, () => `${typeof save()}`)),
  way('a generator', save => {
    function* later() {
      if (Math.PI === 3) yield 0
      return save()
    }
    later().next()
    later().next()
  }),
  way('Promise.try', save => void (Promise as unknown as { try: (fn: Save) => unknown }).try(() => save())),
  way('Object.groupBy', save => Object.groupBy([1, 2], (async () => await save()) as never)),
  way('an iterator helper', save => new Set([1, 2].values().map(async () => await save())).size),
  way('a replacer of JSON', save => JSON.stringify([1], async () => await save())),
  way('a trap', save => {
    const later = new Proxy({} as { x?: unknown; y?: unknown }, { get: async () => await save() })
    return [later.x, later.y].length
  }),
  way('an async generator', save => {
    async function* later() {
      await save()
      yield 1
    }
    void later().next()
    void later().next()
  }),
  way('Array.fromAsync', save => void Array.fromAsync([1, 2], () => save())),
  way('a thenable', save => void Promise.resolve(thenable(save))),
  way('a thenable in a list', save => void Promise.all([thenable(save), 1])),
  way('a thenable that an async function returns', save => {
    const later = async () => thenable(save)
    void later()
  }),
  way('then, taken before the check', save => void taken.call(Promise.resolve(), () => save())),
  way('awaited afterwards', async save => {
    const later = () => save()
    const [one, two] = [later(), later()]
    await one
    await two
  }),
]

/** The calls run one after the other. */
export const inTurn: readonly Way[] = [
  way('await', async save => {
    await save()
    await save()
  }),
  way('await of a function that returns the call', async save => {
    const later = () => save()
    await later()
    await later()
  }),
  way('await of a method that returns the call of one', async save => {
    class Store {
      #later() {
        return save()
      }
      later() {
        return this.#later()
      }
    }
    const store = new Store()
    await store.later()
    await store.later()
  }),
  way('await of call', async save => {
    const later = () => save()
    await later.call(null)
    await Reflect.apply(later, null, [])
  }),
  way('a thread that returns the call', save => {
    const both = async () => {
      await save()
      await save()
    }
    return both()
  }),
]

/** The threads of a check for one way. */
export function threads({ run }: Way, words: Int32Array): (() => unknown)[] {
  const save = async (): Promise<void> => {
    const before = Atomics.load(words, 0)
    await undefined
    Atomics.store(words, 0, before + 1)
  }
  return [() => run(save), () => Atomics.load(words, 0)]
}
