/**
 * Loops that call only brief functions run in strips: the number of turns in each, and the same behaviour.
 */
import { expect, test } from 'vitest'
import { compile } from '../../compile.ts'
import { preemptEverywhere } from '../../../../test/compiler/differential/drive.ts'
import { evaluateModule } from '../../../../test/compiler/differential/evaluate.ts'
import * as runtime from '../../runtime.ts'

const source = `
  class Grid {
    constructor(n) { this.rows = Array.from({ length: n }, (_, i) => i) }
    at(i) { return this.rows[i] }
    put(i, x) { if (i === 77) this.rows[500] = -1; this.rows[i] = x; return this }
    far(i) { let sum = 0; for (let k = 0; k < 40; k++) sum += this.at(i) + k; return sum }
  }
  export function up(n) { const g = new Grid(n); let sum = 0; for (let i = 0; i < n; i++) sum += g.at(i); return sum }
  export function dear(n) { const g = new Grid(n); let sum = 0; for (let i = 0; i < n; i++) sum += g.far(i); return sum }
  export function down(n) { const g = new Grid(n); let sum = 0; for (let i = n - 1; i >= 0; i -= 3) g.put(i, sum += g.at(i)); return [sum, g.rows] }
  export function jumps(n) {
    const g = new Grid(n), seen = []
    outer: for (let k = 0; k < 3; k++) {
      for (let i = 0; i < g.rows.length; i++) {
        if (g.at(i) % 7 === k) continue
        if (g.at(i) > 300 + k) continue outer
        if (g.at(i) < 0) break outer
        seen[seen.length] = g.put(i, g.at(i) + 1).at(i)
      }
    }
    return seen
  }
  export function until(n) { const g = new Grid(n); let i = 0; do { if (g.at(i) > 600) break } while (g.at(i++) < n); while (g.at(i) > 3) i -= g.at(2); return i }
  export function thrown(n) {
    const g = new Grid(n)
    let i = 0
    try { for (; i < 2 * n; i++) if (g.at(i) === undefined) throw new Error('at ' + i) } catch (error) { return error.message }
  }
  export function moved(n) { const g = new Grid(n); let bound = n, turns = 0; for (let i = 0; i < bound; i++) { turns++; if (g.at(i) % 2) bound-- } return [turns, bound] }
  export function made(n) { const g = new Grid(n), all = []; for (let i = 0; i < n; i++) { const x = g.at(i); all[i] = () => x + i } return all.map(f => f()) }`

function load(strip: number | undefined): Record<string, (n: number) => unknown> {
  const { code } = compile(source, 'work.js', { whole: true, strip })
  return evaluateModule(code, 'work.js', { 'heddle/runtime': runtime }) as never
}

const plain: Record<string, (n: number) => unknown> = evaluateModule(source, 'work.js', {}) as never

test.each([undefined, 1, 9, 64])('a loop with brief calls behaves the same in strips, %s turns', strip => {
  const compiled = load(strip)
  for (const name of Object.keys(plain)) {
    for (const n of [0, 1, 8, 65, 1000]) {
      expect([name, n, preemptEverywhere(compiled[name]!, [n]).value]).toEqual([name, n, plain[name]!(n)])
    }
  }
})

test('it has fewer turns between two safepoints if its calls lead to more calls', () => {
  const compiled = load(512)
  const few = preemptEverywhere(compiled['up']!, [1000]).preemptions
  const many = preemptEverywhere(compiled['dear']!, [1000]).preemptions
  expect(few).toBeGreaterThanOrEqual(1000 / 64 - 1)
  expect(few).toBeLessThan(1000 / 8)
  expect(many).toBeGreaterThanOrEqual(1000 / 8 - 1)
})
