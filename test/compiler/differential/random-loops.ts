/**
 * Random nests of loops without calls, which the compiler runs in strips, writes twice, or splits. Counters
 * and bounds of every kind (also non-integers and non-numbers), steps of every sign, bodies that change the
 * counter, and jumps out of everything. Determined by a tape, as in random.ts.
 */

export function loopsFrom(tape: readonly number[]): string {
  return new Loops(tape).program()
}

const starts = [
  '0',
  '1',
  '-3',
  '5',
  '0.5',
  'n',
  'm',
  'n - m',
  'a.length',
  '1e9',
  "'2'",
  'NaN',
  '-0',
  '2 ** 53 - 2',
  'Infinity',
  'big',
  'n * m',
  'undefined',
]
const bounds = [
  '3',
  '10',
  '40',
  'n',
  'm',
  'a.length',
  'n + m',
  't.length',
  "'7'",
  '-5',
  '0',
  '700',
  'NaN',
  'Infinity',
  'n * n',
  's.length',
  'null',
  'o.k',
]
const steps = ['1', '2', '3', '0.25', 'm', 'n', '7', '-1', 'o.k']

class Loops {
  readonly #tape: readonly number[]
  #at = 0
  #names = 0
  #counters: string[] = []
  #labels: string[] = []

  constructor(tape: readonly number[]) {
    this.#tape = tape
  }

  program(): string {
    const lines: string[] = []
    while (this.#at < this.#tape.length) lines.push(this.#loop(3))
    return `'use task'
'use strict'
exports.main = function main() {
  let fuel = 2000
  let n = ${3 + this.#choose(40)}, m = ${1 + this.#choose(5)}, x = 1, y = 0, z = 0
  const a = [5, 3, 8, 1], t = new Int16Array(9), s = 'strips', o = { k: ${this.#choose(6)} }, big = ${this.#choose(2) === 0 ? '0' : '0n'}
  let ended = 'returned'
  try {
    ${lines.join('\n    ')}
  } catch (error) { ended = error === fuel ? 'fuel' : error instanceof Error ? error.constructor.name + error.message : error }
  return [ended, n, m, x, y, z, fuel, a.slice(0, 9), a.length, [...t], o]
}
`
  }

  #choose(count: number): number {
    const next = this.#tape[this.#at]
    if (next === undefined) return 0
    this.#at++
    return next % count
  }

  #pick<T>(list: readonly T[]): T {
    return list[this.#choose(list.length)]!
  }

  #name(prefix: string): string {
    return `${prefix}${++this.#names}`
  }

  /** Ends a loop that runs too long, without a call. */
  readonly #tick = 'if (--fuel < 0) throw fuel;'

  #loop(depth: number): string {
    const label = this.#choose(3) === 0 ? this.#name('l') : null
    const head = label === null ? '' : `${label}: `
    const counters = this.#counters
    const labels = this.#labels
    if (label !== null) this.#labels = [...labels, label]
    try {
      return this.#headed(depth, head)
    } finally {
      this.#counters = counters
      this.#labels = labels
    }
  }

  #headed(depth: number, label: string): string {
    switch (this.#choose(9)) {
      case 0:
      case 1:
      case 2:
      case 3: {
        const i = this.#name('i')
        const start = this.#pick(starts)
        const bound = this.#pick(bounds)
        this.#counters = [...this.#counters, i]
        const down = this.#choose(3) === 0
        const operator = down ? this.#pick(['>', '>=']) : this.#pick(['<', '<=', '<', '!=='])
        const update = this.#update(i, down)
        const extra = this.#choose(4) === 0 ? this.#name('j') : null
        const declared = this.#choose(5) === 0 ? 'var' : 'let'
        const init = `${declared} ${i} = ${down ? bound : start}${extra === null ? '' : `, ${extra} = ${this.#pick(bounds)}`}`
        const test = `${i} ${operator} ${extra === null || this.#choose(2) === 0 ? (down ? start : bound) : extra}`
        const updates = extra === null ? update : `${update}, ${extra}${this.#pick(['++', '--', ' += m'])}`
        return `${label}for (${init}; ${this.#choose(8) === 0 ? '' : test}; ${updates}) ${this.#body(depth)}`
      }
      case 4: {
        const i = this.#name('i')
        this.#counters = [...this.#counters, i]
        const step = this.#update(i, false)
        return `{ let ${i} = ${this.#pick(starts)}; ${label}while (${i} < ${this.#pick(bounds)}) ${this.#body(depth, `${step};`)} }`
      }
      case 5: {
        const i = this.#name('i')
        this.#counters = [...this.#counters, i]
        return `{ let ${i} = ${this.#pick(starts)}; ${label}do ${this.#body(depth, `${this.#update(i, false)};`)} while (${i} < ${this.#pick(bounds)}) }`
      }
      case 6: {
        const i = this.#name('i')
        this.#counters = [...this.#counters, i]
        const over = this.#pick([
          'a',
          't',
          's',
          'new Set(a)',
          '[n, m, x]',
          'a.length > 3 ? a : t',
          'new Float64Array(600)',
          'o.k',
        ])
        return `${label}for (${this.#pick(['const', 'let', 'var'])} ${i} of ${over}) ${this.#body(depth)}`
      }
      case 7: {
        const i = this.#name('k')
        return `${label}for (const ${i} in ${this.#pick(['o', 'a', 's', '{ p: 1, q: 2 }'])}) ${this.#body(depth)}`
      }
      default:
        return `${label}while (x ${this.#pick(['<', '!==', '>'])} ${this.#pick(bounds)}) ${this.#body(depth, this.#pick(['x++;', 'x += m;', 'x = -x + 1;', '']))}`
    }
  }

  #update(i: string, down: boolean): string {
    switch (this.#choose(6)) {
      case 0:
      case 1:
        return down ? `${i}--` : `${i}++`
      case 2:
        return down ? `--${i}` : `++${i}`
      case 3:
        return `${i} ${down ? '-=' : '+='} ${this.#pick(steps)}`
      case 4:
        return `${i} = ${i} ${down ? '-' : '+'} ${this.#pick(steps)}`
      default:
        return down ? `${i} >>= 1` : `${i} *= 2`
    }
  }

  #body(depth: number, last = ''): string {
    const lines = [this.#tick]
    const count = 1 + this.#choose(3)
    for (let k = 0; k < count; k++) lines.push(this.#statement(depth))
    return `{ ${lines.join(' ')} ${last} }`
  }

  #statement(depth: number): string {
    const value = (): string =>
      this.#pick(['x', 'y', 'z', 'n', 'm', '1', '3', 'a[y & 3]', 't[x & 7]', 'o.k', ...this.#counters])
    switch (this.#choose(depth > 0 ? 14 : 10)) {
      case 0:
        return `y = (y * 31 + Number(${value()}) | 0) ^ x;`
      case 1:
        return `z += ${value()} > ${value()} ? 1 : -1;`
      case 2:
        return `t[y & 7] += ${this.#choose(9)};`
      case 3:
        return `if (${value()} % ${2 + this.#choose(5)} == ${this.#choose(3)}) ${this.#jump()}`
      case 4:
        return `a[a.length < 30 ? a.length : y & 3] = x | 0;`
      case 5:
        return this.#counters.length > 0
          ? `if (y % 5 === 0) ${this.#pick(this.#counters.filter(name => name.startsWith('i')).concat('x'))}${this.#pick(['++', ' += 2', '--'])};`
          : 'x++;'
      case 6:
        return `x = (x + ${this.#choose(7)}) % 1000;`
      case 7:
        return `n = (n + ${this.#pick(['1', '-1', '0'])}) | 0;`
      case 8:
        return `switch (y & 3) { case 0: z++; case 1: x--; break; case 2: ${this.#jump()} default: z ^= 1 }`
      case 9:
        return `try { if ((y & 15) === ${this.#choose(16)}) throw 'thrown'; ${this.#jump()} } catch (e) { z -= 2; ${this.#choose(3) === 0 ? this.#jump() : ''} } finally { z += 3; }`
      default:
        return this.#loop(depth - 1)
    }
  }

  #jump(): string {
    const jumps = [
      'break;',
      'continue;',
      'z++;',
      'x++;',
      ...this.#labels.flatMap(label => [`break ${label};`, `continue ${label};`]),
    ]
    return this.#pick(jumps)
  }
}
