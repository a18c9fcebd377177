import { listInsertAfter, listLast, ListNode, listUnshift } from '../../arena/trees/list.ts'
import { Futex, Waiter } from './records.ts'

/**
 * Inserts a waiter into the queue of a locked futex: behind waiters of its own priority, before those of a
 * lower one.
 */
export function insertByPriority(i32: Int32Array, futex: number, waiter: number): void {
  const head = futex + Futex.waiters
  const priority = i32[waiter + Waiter.priority]
  let place = listLast(i32, head)
  while (place !== 0 && i32[place + Waiter.priority] > priority) {
    const before = i32[place + ListNode.prev]
    place = before === head ? 0 : before
  }
  if (place === 0) listUnshift(i32, head, waiter)
  else listInsertAfter(i32, head, place, waiter)
}
