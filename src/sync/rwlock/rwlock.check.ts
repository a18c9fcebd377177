import { check, type CheckOptions } from '../../checker/check.ts'
import { BOUNDED, DIES, NONE, ONE } from '../../../testing/sync/checksetup.ts'
import { type Scene, scene } from '../../../testing/sync/rwprograms.ts'

/** Once with waiters that compete, once with waiters that are handed the lock. */
function both(name: string, options: CheckOptions, what: Scene): void {
  check(name, options, scene(what))
  check(`${name}; the waiters are handed the lock`, options, scene({ ...what, demanding: true }))
}

check('a writer ends as a reader comes', {}, scene({ held: 'write', others: [['comes to', 'read']] }))
check('a reader ends as a writer comes', {}, scene({ held: 'read', others: [['comes to', 'write']] }))
both('a writer ends as the time of another is over', {}, { held: 'write', others: [['is late to', 'write']] })
both('a reader ends as the time of a writer is over', {}, { held: 'read', others: [['is late to', 'write']] })
both(
  'a writer ends as a reader is cancelled',
  {},
  { held: 'write', others: [['is cancelled as it waits to', 'read']] },
)
check(
  'one of two readers ends as the other upgrades',
  {},
  scene({ held: 'read', others: [['waits to', 'upgrade']] }),
)
check(
  'one of two readers ends as the time of the other, which upgrades, is over',
  {},
  scene({ held: 'read', others: [['is late to', 'upgrade']] }),
)
check(
  'a writer whose time is over leaves the queue to the reader behind it',
  {},
  scene({
    held: 'read',
    others: [
      ['is late to', 'write'],
      ['waits to', 'read'],
    ],
  }),
)
both(
  'a cancelled writer leaves the queue to the writer behind it',
  {},
  {
    held: 'write',
    others: [
      ['is cancelled as it waits to', 'write'],
      ['waits to', 'write'],
    ],
  },
)
both(
  'a reader and a writer wait for a writer: one after the other is admitted',
  {},
  {
    held: 'write',
    others: [
      ['waits to', 'read'],
      ['waits to', 'write'],
    ],
  },
)
const comesBehind: Scene = {
  held: 'read',
  others: [
    ['waits to', 'write'],
    ['comes to', 'read'],
  ],
}
check(`a writer waits, and a reader comes ${ONE}`, BOUNDED, scene(comesBehind))
check(
  'a writer waits, and a reader comes; the waiter is handed the lock',
  {},
  scene({ ...comesBehind, demanding: true }),
)
check(
  'a reader upgrades before a writer that is queued already',
  {},
  scene({
    held: 'read',
    others: [
      ['waits to', 'write'],
      ['waits to', 'upgrade'],
    ],
  }),
)

both('a writer dies at any step: a waiting reader is admitted or gets an error', DIES(0), {
  held: 'write',
  others: [['waits to', 'read']],
  mortal: 0,
})
both('a writer dies at any step: a waiting writer is admitted or gets an error', DIES(0), {
  held: 'write',
  others: [['waits to', 'write']],
  mortal: 0,
})
both(
  'a reader dies at any step: no thread writes before another unlocks for it, and then the waiters are admitted',
  DIES(0),
  { held: 'read', others: [['waits to', 'write']], mortal: 0 },
)
const letsTwoIn: Scene = {
  held: 'write',
  others: [
    ['waits to', 'read'],
    ['waits to', 'read'],
  ],
  mortal: 0,
}
check(
  `a writer dies at any step as it admits two readers ${NONE}`,
  { ...DIES(0), ...BOUNDED, preemptions: 0 },
  scene(letsTwoIn),
)
check(
  'a writer dies at any step as it admits two readers; the waiters are handed the lock',
  DIES(0),
  scene({ ...letsTwoIn, demanding: true }),
)
both('one of two waiting readers dies at any step, and the other is admitted', DIES(1), {
  held: 'write',
  others: [
    ['waits to', 'read'],
    ['waits to', 'read'],
  ],
  mortal: 1,
})
