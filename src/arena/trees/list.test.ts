import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  initList,
  isListed,
  ListHead,
  ListNode,
  listCount,
  listFirst,
  listInsertAfter,
  listIsEmpty,
  listLast,
  listNext,
  listPush,
  listRemove,
  listShift,
  listSplice,
  listUnshift,
} from './list.ts'

const LISTS = 3
const NODES = 12
const heads = Array.from({ length: LISTS }, (_, i) => 8 + i * ListHead.words)
const nodes = Array.from({ length: NODES }, (_, i) => 64 + i * ListNode.words)

function memory(): Int32Array {
  const i32 = new Int32Array(256)
  for (const head of heads) initList(i32, head)
  return i32
}

function contents(i32: Int32Array, head: number): number[] {
  const found: number[] = []
  for (let node = listFirst(i32, head); node !== 0; node = listNext(i32, head, node)) found.push(node)
  return found
}

test('lists behave as arrays do, over 100,000 random operations', () => {
  const step = fc.record({
    kind: fc.constantFrom('push', 'unshift', 'after', 'remove', 'shift', 'splice'),
    node: fc.nat(NODES - 1),
    place: fc.nat(NODES - 1),
    list: fc.nat(LISTS - 1),
    other: fc.nat(LISTS - 1),
  })
  let operations = 0
  fc.assert(
    fc.property(fc.array(step, { minLength: 250, maxLength: 300 }), steps => {
      const i32 = memory()
      const model: number[][] = heads.map(() => [])
      const whereIs = (node: number): number => model.findIndex(list => list.includes(node))
      for (const { kind, list, other, ...picked } of steps) {
        operations++
        const head = heads[list]
        const node = nodes[picked.node]
        const place = nodes[picked.place]
        const at = whereIs(node)
        if (kind === 'push' || kind === 'unshift') {
          const insert = kind === 'push' ? listPush : listUnshift
          if (at >= 0) expect(() => insert(i32, head, node)).toThrow(/double insert/)
          else {
            insert(i32, head, node)
            if (kind === 'push') model[list].push(node)
            else model[list].unshift(node)
          }
        } else if (kind === 'after') {
          if (whereIs(place) !== list) expect(() => listInsertAfter(i32, head, place, node)).toThrow()
          else if (at >= 0) expect(() => listInsertAfter(i32, head, place, node)).toThrow(/double insert/)
          else {
            listInsertAfter(i32, head, place, node)
            model[list].splice(model[list].indexOf(place) + 1, 0, node)
          }
        } else if (kind === 'remove') {
          if (at < 0) expect(() => listRemove(i32, head, node)).toThrow(/on no list/)
          else if (at !== list) expect(() => listRemove(i32, head, node)).toThrow(/foreign removal/)
          else {
            listRemove(i32, head, node)
            model[list].splice(model[list].indexOf(node), 1)
          }
        } else if (kind === 'shift') {
          expect(listShift(i32, head)).toBe(model[list].shift() ?? 0)
        } else if (other !== list) {
          listSplice(i32, heads[other], head)
          model[list].push(...model[other].splice(0))
        }
        expect(isListed(i32, node)).toBe(whereIs(node) >= 0)
      }
      heads.forEach((head, i) => {
        expect(contents(i32, head)).toEqual(model[i])
        expect(listCount(i32, head)).toBe(model[i].length)
        expect(listIsEmpty(i32, head)).toBe(model[i].length === 0)
        expect(listLast(i32, head)).toBe(model[i].at(-1) ?? 0)
      })
    }),
    { numRuns: 400 },
  )
  expect(operations).toBeGreaterThanOrEqual(100_000)
})

test('a list cannot be spliced onto itself, nor a head removed', () => {
  const i32 = memory()
  expect(() => listSplice(i32, heads[0], heads[0])).toThrow(/itself/)
  expect(() => listRemove(i32, heads[0], heads[0])).toThrow(/head/)
})

test('null and heads that were never initialised are refused', () => {
  const i32 = memory()
  expect(() => listPush(i32, heads[0], 0)).toThrow(/null/)
  expect(() => listPush(i32, 40, nodes[0])).toThrow(/not an initialised list/)
  expect(() => initList(i32, 0)).toThrow(/null/)
})

test('a node that moved twice by splice is still known to be on its third list', () => {
  const i32 = memory()
  listPush(i32, heads[0], nodes[0])
  listSplice(i32, heads[0], heads[1])
  listPush(i32, heads[0], nodes[1])
  listSplice(i32, heads[1], heads[2])
  expect(() => listRemove(i32, heads[0], nodes[0])).toThrow(/foreign removal/)
  expect(() => listRemove(i32, heads[1], nodes[0])).toThrow(/foreign removal/)
  listRemove(i32, heads[2], nodes[0])
  expect(listIsEmpty(i32, heads[2])).toBe(true)
  expect(contents(i32, heads[0])).toEqual([nodes[1]])
})
