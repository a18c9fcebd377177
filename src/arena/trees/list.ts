import { assert } from '../assert.ts'
import { type Layout, record, word } from '../memory/record.ts'

/**
 * Intrusive doubly linked lists: the links live in the record that is listed, so nothing is allocated and a
 * record is removed without a search. Every operation is O(1). The caller holds the lock that guards the
 * list.
 *
 * A node knows the list it is on, so that a double insert and a removal through the wrong list are caught:
 * `list` is the head, `epoch` the head's epoch when the node came. A splice moves all nodes in one step
 * without touching them, and increments the epoch of the list that they left. A node with an old epoch has
 * been spliced away since: a walk to the next head finds its list, and writes it down, so that it happens
 * once.
 *
 *   list  | epoch           | meaning
 *   ------+-----------------+------------------------------------------------------------
 *    0    |   any           | on no list
 *    self |   own epoch     | this is a head
 *    h    |   h's epoch     | on list h
 *    h    |   older         | was on h; has been spliced to the list whose head comes next
 */
export const ListNode: Layout<'next' | 'prev' | 'list' | 'epoch'> = record('list node', {
  next: word,
  prev: word,
  list: word,
  epoch: word,
})

/** A head is a node that is on its own list, plus the number of nodes. */
export const ListHead: Layout<'next' | 'prev' | 'list' | 'epoch' | 'count'> = record('list head', {
  next: word,
  prev: word,
  list: word,
  epoch: word,
  count: word,
})

const { next, prev, list, epoch } = ListNode
const { count } = ListHead

/** Makes `head` an empty list. Its memory must not be a list with nodes on it. */
export function initList(i32: Int32Array, head: number): void {
  assert(head !== 0, 'a list head cannot be null')
  i32[head + next] = head
  i32[head + prev] = head
  i32[head + list] = head
  i32[head + count] = 0
}

export function listIsEmpty(i32: Int32Array, head: number): boolean {
  return i32[head + next] === head
}

/** How many nodes are on the list. */
export function listCount(i32: Int32Array, head: number): number {
  return i32[head + count]
}

/** Whether the node is on some list. */
export function isListed(i32: Int32Array, node: number): boolean {
  return i32[node + list] !== 0
}

/** The first node, or 0. */
export function listFirst(i32: Int32Array, head: number): number {
  const first = i32[head + next]
  return first === head ? 0 : first
}

/** The last node, or 0. */
export function listLast(i32: Int32Array, head: number): number {
  const last = i32[head + prev]
  return last === head ? 0 : last
}

/** The node after this one, or 0 at the end of the list. */
export function listNext(i32: Int32Array, head: number, node: number): number {
  const after = i32[node + next]
  return after === head ? 0 : after
}

/** Appends a node that is on no list. */
export function listPush(i32: Int32Array, head: number, node: number): void {
  link(i32, head, i32[head + prev], node)
}

/** Puts a node that is on no list at the front. */
export function listUnshift(i32: Int32Array, head: number, node: number): void {
  link(i32, head, head, node)
}

/** Inserts a node that is on no list right after `place`, which is on list `head` (or is the head itself). */
export function listInsertAfter(i32: Int32Array, head: number, place: number, node: number): void {
  assert(place === head || ownerOf(i32, place) === head, 'foreign insert: the place is on another list')
  link(i32, head, place, node)
}

/** Removes the node from this list. */
export function listRemove(i32: Int32Array, head: number, node: number): void {
  assert(node !== head, 'a list head cannot be removed from its list')
  assert(i32[node + list] !== 0, 'removed a node that is on no list')
  assert(ownerOf(i32, node) === head, 'foreign removal: the node is on another list')
  unlink(i32, head, node)
}

/** Removes and returns the first node, or returns 0 when the list is empty. */
export function listShift(i32: Int32Array, head: number): number {
  const first = i32[head + next]
  if (first === head) return 0
  unlink(i32, head, first)
  return first
}

/** Moves all nodes of `from` behind those of `to`, in order. `from` is empty afterwards. */
export function listSplice(i32: Int32Array, from: number, to: number): void {
  assert(from !== to, 'a list cannot be spliced onto itself')
  assert(i32[from + list] === from && i32[to + list] === to, 'both ends of a splice are list heads')
  const moved = i32[from + count]
  if (moved === 0) return
  const first = i32[from + next]
  const last = i32[from + prev]
  const tail = i32[to + prev]
  i32[tail + next] = first
  i32[first + prev] = tail
  i32[last + next] = to
  i32[to + prev] = last
  i32[to + count] += moved
  i32[from + next] = from
  i32[from + prev] = from
  i32[from + count] = 0
  i32[from + epoch]++
}

function link(i32: Int32Array, head: number, before: number, node: number): void {
  assert(node !== 0, 'null cannot be put on a list')
  assert(i32[node + list] === 0, 'double insert: the node is on a list already')
  assert(i32[head + list] === head, 'the head is not an initialised list')
  const after = i32[before + next]
  i32[node + next] = after
  i32[node + prev] = before
  i32[node + list] = head
  i32[node + epoch] = i32[head + epoch]
  i32[before + next] = node
  i32[after + prev] = node
  i32[head + count]++
}

function unlink(i32: Int32Array, head: number, node: number): void {
  const before = i32[node + prev]
  const after = i32[node + next]
  assert(i32[before + next] === node && i32[after + prev] === node, 'the links around a listed node agree')
  i32[before + next] = after
  i32[after + prev] = before
  i32[node + next] = 0
  i32[node + prev] = 0
  i32[node + list] = 0
  i32[head + count]--
}

/** The head of the list that a listed node is on. O(1), except the first time after a splice. */
function ownerOf(i32: Int32Array, node: number): number {
  const said = i32[node + list]
  if (said === 0) return 0
  if (i32[said + epoch] === i32[node + epoch] && i32[said + list] === said) return said
  let end = node
  while (i32[end + list] !== end) end = i32[end + next]
  for (let at = node; at !== end; at = i32[at + next]) {
    i32[at + list] = end
    i32[at + epoch] = i32[end + epoch]
  }
  return end
}
