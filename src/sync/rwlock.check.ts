import { assert } from '../arena/assert.ts'
import { check } from '../checker/check.ts'
import { ambient } from '../futex/ambient.ts'
import { checkedThreads, waitAndCancel } from './checksetup.ts'
import { RwLock } from './rwlock.ts'
import { WriteWait } from './rwwaits.ts'

function locks(threads: number): {
  view: Int32Array
  read(id: number): void
  write(id: number, timeout?: number): void
  cancelWrite(id: number): void
} {
  const view = checkedThreads(threads)
  const made = Array.from({ length: threads }, () => new RwLock({ view }))
  let readers = 0
  let writers = 0
  const writing = (id: number): void => {
    writers++
    assert(writers === 1 && readers === 0, 'a writer is alone')
    writers--
    made[id].unlockWrite()
  }
  return {
    view,
    read(id) {
      made[id].lockReadSync()
      readers++
      assert(writers === 0, 'nobody writes while one reads')
      readers--
      made[id].unlockRead()
    },
    write(id, timeout) {
      try {
        made[id].lockWriteSync(timeout === undefined ? undefined : { timeout })
      } catch {
        return
      }
      writing(id)
    },
    cancelWrite(id) {
      if (waitAndCancel(new WriteWait(made[id], ambient().tid))) writing(id)
    },
  }
}

const isFree = (view: Int32Array) => () =>
  assert((Atomics.load(view, 0) & 0x7fff_ffff) === 0, 'free at the end')

check('a reader and a writer: never both, and both get in', { time: 20_000 }, () => {
  const { view, read, write } = locks(2)
  return { threads: { reader: () => read(0), writer: () => write(1) }, final: isFree(view) }
})

check('a writer whose time is over leaves the line to the reader behind it', { time: 20_000 }, () => {
  const { view, read, write } = locks(2)
  return { threads: { reader: () => read(0), writer: () => write(1, 1) }, final: isFree(view) }
})

check('a reader and two writers, one of which is cancelled', { time: 20_000 }, () => {
  const { view, read, write, cancelWrite } = locks(3)
  return {
    threads: { reader: () => read(0), writer: () => write(1), cancelled: () => cancelWrite(2) },
    final: isFree(view),
  }
})
