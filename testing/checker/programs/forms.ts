import type { Program } from '../../../src/checker/machine/program.ts'

/** Two words of shared memory, as all kinds of view. */
interface Memory {
  readonly v: Int32Array
  readonly d: DataView
  readonly bytes: Uint8Array
  readonly grown: Int32Array
  readonly growable: SharedArrayBuffer
}

type Form = (memory: Memory, index: number, value: number) => unknown

const { load, store, exchange } = Atomics
function* elements(v: Int32Array): Generator<number> {
  yield* v
}
function* pulled(v: Int32Array): Generator<number> {
  for (let i = 0; i < v.length; i++) yield v[i]!
}

/** The operations of random programs; `forms.test.ts` gives the single accesses of each. */
export const forms: Readonly<Record<string, Form>> = {
  index: ({ v }, i) => v[i],
  text: ({ v }, i) => (v as any)[`${i}`],
  at: ({ v }, i) => v.at(i),
  load: ({ v }, i) => Atomics.load(v, i),
  alias: ({ v }, i) => load(v, i),
  data: ({ d }, i) => d.getInt32(4 * i, true),
  byte: ({ bytes }, i) => bytes[4 * i],
  reflect: ({ v }, i) => Reflect.get(v, i),
  converts: ({ v }, i) => v[{ toString: () => String(i) } as never],
  default: ({ v }, i) => ((a = v[i]) => a)(),

  spread: ({ v }) => [...v].join(''),
  from: ({ v }) => Array.from(v).join(''),
  slice: ({ v }) => v.slice().join(''),
  join: ({ v }) => v.join(''),
  copy: ({ v }) => new Uint8Array(v).join(''),
  set: ({ v }) => {
    const local = new Uint8Array(2)
    local.set(v)
    return local.join('')
  },
  object: ({ v }) => Object.values({ ...v }).join(''),
  json: ({ v }) => Object.values(JSON.parse(JSON.stringify(v))).join(''),
  forOf: ({ v }) => {
    let text = ''
    for (const x of v) text += x
    return text
  },
  pattern: ({ v }) => {
    const [a, b] = v
    return `${a}${b}`
  },
  map: ({ v }) => v.map(x => x).join(''),
  reduce: ({ v }) => v.reduce((text, x) => `${text}${x}` as never, '' as never),
  delegates: ({ v }) => [...elements(v)].join(''),
  generator: ({ v }) => {
    const numbers = pulled(v)
    return `${numbers.next().value}${numbers.next().value}`
  },
  nested: ({ v }) => v.map((x, i) => x + 2 * v[1 - i]!).join(''),

  write: ({ v }, i, x) => void (v[i] = x),
  store: ({ v }, i, x) => void Atomics.store(v, i, x),
  aliasStore: ({ v }, i, x) => void store(v, i, x),
  dataWrite: ({ d }, i, x) => d.setInt32(4 * i, x, true),
  byteWrite: ({ bytes }, i, x) => void (bytes[4 * i] = x),
  reflectSet: ({ v }, i, x) => void Reflect.set(v, i, x),
  valued: ({ v }, i, x) => void (v[i] = { valueOf: () => x } as never),
  fill: ({ v }, _, x) => void v.fill(x),
  setAll: ({ v }, _, x) => v.set([x, x]),
  destructured: ({ v }, _, x) => {
    ;[v[0], v[1]] = [x, x]
  },
  copyWithin: ({ v }) => void v.copyWithin(1, 0),
  // oxlint-disable-next-line unicorn/no-array-reverse
  reverse: ({ v }) => void v.reverse(),

  add: ({ v }, i) => Atomics.add(v, i, 1),
  exchange: ({ v }, i, x) => exchange(v, i, x),
  compareExchange: ({ v }, i, x) => Atomics.compareExchange(v, i, 0, x),
  plus: ({ v }, i) => v[i]++,

  spins: ({ v }, i) => {
    let turns = 0
    while (Atomics.load(v, i) === 0 && turns < 2) turns++
    return turns
  },
  spinsInObject: ({ v }, i) => {
    const held = { turns: 0 }
    while (v[i] === 0 && held.turns < 2) held.turns++
    return held.turns
  },
  spinsInProxy: ({ v }, i) => {
    let turns = 0
    const counted: any = new Proxy({}, { get: () => ++turns })
    while (Atomics.load(v, i) === 0) if (counted.next >= 2) break
    return turns
  },
  spinsInGenerator: ({ v }, i) => {
    const turns = [1, 2].values()
    while (Atomics.load(v, i) === 0) if (turns.next().done === true) break
    return 0
  },
  times: ({ v }, i) => Atomics.wait(v, i, 5, 10),

  spinLock: ({ v }, i, x) => {
    while (Atomics.compareExchange(v, i, 0, x) !== 0);
    Atomics.store(v, i, 0)
  },
  exchangeLock: ({ v }, i) => {
    while (Atomics.exchange(v, i, 1) === 1) Atomics.pause?.()
    Atomics.store(v, i, 0)
  },
  testedLock: ({ v }, i, x) => {
    for (;;) {
      if (Atomics.load(v, i) !== 0) continue
      if (Atomics.compareExchange(v, i, 0, x) === 0) break
    }
    Atomics.store(v, i, 0)
  },
  ticketLock: ({ v }, i) => {
    const ticket = Atomics.add(v, i, 1)
    while (Atomics.load(v, 1 - i) !== ticket);
    Atomics.store(v, 1 - i, ticket + 1)
    return ticket
  },
  spinsUntil: ({ v }, i, x) => {
    while (Atomics.load(v, i) !== x);
  },
  spinsPlainly: ({ v }, i) => {
    while (v[i] === 0);
    return v[i]
  },

  wait: ({ v }, i) => Atomics.wait(v, i, 0),
  waitAwhile: ({ v }, i) => Atomics.wait(v, i, 0, 10),
  notify: ({ v }, i) => Atomics.notify(v, i, 1),
  notifyAll: ({ v }, i) => Atomics.notify(v, i),

  grow: ({ growable }) => {
    if (growable.byteLength === 4) growable.grow(8)
  },
  length: ({ grown }) => grown.length,
  beyond: ({ grown }) => grown[1],
}

export interface Step {
  readonly form: string
  readonly index: number
  readonly value: number
}

export function program(threads: readonly (readonly Step[])[]): Program & { memory: Memory } {
  const buffer = new SharedArrayBuffer(8)
  const growable = new SharedArrayBuffer(4, { maxByteLength: 8 })
  const memory: Memory = {
    v: new Int32Array(buffer),
    d: new DataView(buffer),
    bytes: new Uint8Array(buffer),
    growable,
    grown: new Int32Array(growable),
  }
  return {
    memory,
    threads: threads.map(steps => () => {
      let text = ''
      for (const { form, index, value } of steps) {
        const run = forms[form]!
        text += `${run(memory, index, value)};`
      }
      return text
    }),
  }
}
