/**
 * The litmus tests of the literature, under the memory model of ECMA-262. `x=1` is a plain access, `x:=1` one
 * by Atomics. An outcome is the list of the values in the registers and, after `;`, of the final reads, in
 * order. Each expected set is derived beside it, from the axioms as docs/weakmemory.md numbers them. "SC"
 * means the outcomes of interleavings: all accesses are atomic and there is no race.
 */
import { describe, expect, test } from 'vitest'
import { check } from '../../src/checker/check.ts'
import { program } from './litmusprogram.ts'

/** All strings of this many digits, each below `base`. */
function all(digits: number, base = 2): string[] {
  return digits === 0
    ? ['']
    : all(digits - 1, base).flatMap(text => Array.from({ length: base }, (_, n) => text + n))
}

const without = (list: readonly string[], ...gone: string[]): string[] =>
  list.filter(text => !gone.includes(text))

const tests: readonly (readonly [name: string, text: string, expected: readonly string[]])[] = [
  // Store buffering.
  ['SB', 'x=1 r=y | y=1 s=x', all(2)], // [5] speaks of atomic writes alone
  ['SB, atomic', 'x:=1 r:=y | y:=1 s:=x', without(all(2), '00')], // SC; 00 breaks [5c]: each read before the other's write
  ['SB, atomic writes', 'x:=1 r=y | y:=1 s=x', all(2)], // [5c] needs an atomic read, [5b] an atomic write to take from
  ['SB, atomic reads', 'x=1 r:=y | y=1 s:=x', all(2)], // [5] needs an atomic write between
  ['SB, one thread atomic', 'x:=1 r:=y | y=1 s=x', all(2)],
  // Load buffering. A read that takes a write is not ordered after it, unless they synchronize: both atomic,
  // same range.
  ['LB', 'r=x y=1 | s=y x=1', all(2)],
  ['LB, atomic', 'r:=x y:=1 | s:=y x:=1', without(all(2), '11')], // [1]: a circle
  ['LB, atomic reads', 'r:=x y=1 | s:=y x=1', all(2)],
  ['LB, atomic writes', 'r=x y:=1 | s=y x:=1', all(2)],
  ['LB, one place atomic', 'r:=x y=1 | s=y x:=1', without(all(2), '11')], // r=1: s=y happens before y=1, by way of x: [2]
  // Message passing.
  ['MP', 'x=1 y=1 | r=y s=x', all(2)],
  ['MP, atomic', 'x:=1 y:=1 | r:=y s:=x', without(all(2), '10')],
  ['MP, atomic flag', 'x=1 y:=1 | r:=y s=x', without(all(2), '10')], // [3]: x=1 happens before s=x
  ['MP, flag written atomically', 'x=1 y:=1 | r=y s=x', all(2)], // nothing synchronizes
  ['MP, flag read atomically', 'x=1 y=1 | r:=y s=x', all(2)],
  ['MP, atomic data', 'x:=1 y=1 | r=y s:=x', all(2)], // the read of x may come before its write in the memory order
  // Independent reads of independent writes.
  ['IRIW', 'x=1 | y=1 | a=x b=y | c=y d=x', all(4)],
  ['IRIW, atomic', 'x:=1 | y:=1 | a:=x b:=y | c:=y d:=x', without(all(4), '1010')],
  ['IRIW, atomic writes', 'x:=1 | y:=1 | a=x b=y | c=y d=x', all(4)],
  ['IRIW, atomic reads', 'x=1 | y=1 | a:=x b:=y | c:=y d:=x', all(4)],
  ['IRIW, second reads plain', 'x:=1 | y:=1 | a:=x b=y | c:=y d=x', all(4)], // [5c] needs atomic reads
  // Two writes each. The final reads happen after everything, and find any write that no other hides.
  ['2+2W', 'x=1 y=2 | y=1 x=2 ; x y', ['11', '12', '21', '22']],
  ['2+2W, atomic', 'x:=1 y:=2 | y:=1 x:=2 ; x y', ['12', '21', '22']], // [5b]: the last in the memory order
  ['2+2W, x atomic', 'x:=1 y=2 | y=1 x:=2 ; x y', ['11', '12', '21', '22']],
  // Write to read causality.
  ['WRC', 'x=1 | r=x y=1 | s=y t=x', all(3)],
  ['WRC, atomic', 'x:=1 | r:=x y:=1 | s:=y t:=x', without(all(3), '110')],
  ['WRC, atomic flag', 'x=1 | r=x y:=1 | s:=y t=x', all(3)], // that r takes x=1 orders nothing: both are plain
  ['WRC, last read plain', 'x:=1 | r:=x y:=1 | s:=y t=x', without(all(3), '110')],
  ['WRC, first read plain', 'x:=1 | r=x y:=1 | s:=y t:=x', all(3)],
  // Coherence of one place: by happens-before alone where accesses are plain.
  ['CoRR', 'x=1 | r=x s=x', all(2)], // 10 too: nothing hides the set-up
  ['CoRR, atomic', 'x:=1 | r:=x s:=x', without(all(2), '10')],
  ['CoRR, atomic write', 'x:=1 | r=x s=x', all(2)],
  ['CoRR, atomic reads', 'x=1 | r:=x s:=x', all(2)],
  ['CoRR, first read atomic', 'x:=1 | r:=x s=x', without(all(2), '10')], // x:=1 happens before s
  ['CoWW', 'x=1 x=2 ; x', ['2']], // [3]
  ['CoWW, read by another', 'x=1 x=2 | r=x s=x', all(2, 3)],
  ['CoWW, read by another, atomic', 'x:=1 x:=2 | r:=x s:=x', ['00', '01', '02', '11', '12', '22']],
  ['CoRW1', 'r=x x=1', ['0']], // [2]
  ['CoRW2', 'r=x x=1 | x=2 ; x', ['01', '02', '21', '22']],
  ['CoRW2, atomic', 'r:=x x:=1 | x:=2 ; x', ['01', '02', '21']],
  ['CoWR', 'x=1 r=x | x=2 ; x', ['11', '12', '21', '22']], // [3] hides the set-up from r
  ['CoWR, atomic', 'x:=1 r:=x | x:=2 ; x', ['11', '12', '22']],
  // Causality through three threads.
  ['ISA2', 'x=1 y=1 | r=y z=1 | s=z t=x', all(3)],
  ['ISA2, atomic', 'x:=1 y:=1 | r:=y z:=1 | s:=z t:=x', without(all(3), '110')],
  ['ISA2, atomic flags', 'x=1 y:=1 | r:=y z:=1 | s:=z t=x', without(all(3), '110')],
  ['ISA2, one flag atomic', 'x=1 y=1 | r=y z:=1 | s:=z t=x', all(3)],
  // Store buffering behind a plain write that happens before the atomic one: 110 breaks [5c].
  [
    'SB behind a plain write',
    'x=1 z:=1 y:=1 r:=x | a:=z x:=2 s:=y',
    ['100', '101', '111', '200', '201', '210', '211'],
  ],
  // R and S.
  ['R', 'x=1 y=1 | y=2 r=x ; y', ['01', '02', '11', '12']],
  ['R, atomic', 'x:=1 y:=1 | y:=2 r:=x ; y', ['01', '11', '12']],
  ['R, y atomic', 'x=1 y:=1 | y:=2 r=x ; y', ['01', '02', '11', '12']], // two writes do not synchronize
  ['S', 'x=2 y=1 | r=y x=1 ; x', ['01', '02', '11', '12']],
  ['S, atomic', 'x:=2 y:=1 | r:=y x:=1 ; x', ['01', '02', '11']],
  ['S, y atomic', 'x=2 y:=1 | r:=y x=1 ; x', ['01', '02', '11']], // x=2 happens before x=1, which hides it
]

describe('a litmus test', () => {
  test.each(tests)('%s (%s) has the outcomes that the model allows', (_, text, expected) => {
    const result = check('litmus', { memory: 'weak' }, program(text))
    expect(result.complete).toBe(true)
    expect(result.outcomes?.map(({ text: outcome }) => JSON.parse(outcome))).toEqual([...expected].sort())
  })

  test('of atomics alone has the outcomes of interleavings', () => {
    for (const [name, text] of tests) {
      if (/(?<!:)=/.test(text)) continue
      // Final reads are plain, and happen after everything.
      const weak = check('weak', { memory: 'weak' }, program(text))
      const sequential = check('sequential', { expectOutcomes: [] }, program(text))
      const list = (result: typeof weak): string[] => result.outcomes!.map(({ text: outcome }) => outcome)
      expect(list(weak), name).toEqual(list(sequential))
    }
  })
})
