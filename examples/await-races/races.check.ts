import { check, type Outside } from '../../src/checker/check.ts'
import { type Cache, EagerCache, type Load, PatientCache } from './cache.ts'
import { type Hall, HoldingHall, type Pay, TrustingHall } from './seats.ts'
import { PlainSessions, QueuedSessions, type Session, type Sessions, type Store } from './sessions.ts'

/** Two requests need the same value: it must be loaded once. */
function twoReaders(make: (load: Load) => Cache) {
  return ({ io }: Outside) => {
    let loads = 0
    const cache = make(key =>
      io(`load ${key}`, () => {
        loads++
        return 'Ada'
      }),
    )
    return {
      tasks: { ann: () => cache.get('user 1'), bob: () => cache.get('user 1') },
      final() {
        if (loads !== 1) throw new Error(`it was loaded ${loads} times`)
      },
    }
  }
}

/** Two buyers, one seat, and a payment service that may refuse: at most one seat is sold. */
function lastSeat(make: (seats: number, pay: Pay) => Hall) {
  return ({ io, choose }: Outside) => {
    const hall = make(1, buyer =>
      io(`charge ${buyer}`, () => {
        if (choose(false, true)) throw new Error('the card was refused')
      }),
    )
    const buy = (buyer: string) => async () => await hall.book(buyer).catch(() => false)
    return {
      tasks: { ann: buy('ann'), bob: buy('bob') },
      always() {
        if (hall.sold.length > 1) throw new Error(`the seat was sold to ${hall.sold.join(' and ')}`)
      },
    }
  }
}

/** Two requests of one user each write into the session: both changes must be there at the end. */
function twoRequests(make: (store: Store) => Sessions) {
  return ({ io }: Outside) => {
    let stored: Session = {}
    const sessions = make({
      read: id => io(`read ${id}`, () => stored),
      write: (id, session) =>
        io(`write ${id}`, () => {
          stored = session
        }),
    })
    return {
      tasks: {
        login: () => sessions.set('s1', 'user', 'ada'),
        basket: () => sessions.set('s1', 'basket', '2 books'),
      },
      final() {
        if (stored.user !== 'ada' || stored.basket !== '2 books') {
          throw new Error(`the session is ${JSON.stringify(stored)}`)
        }
      },
    }
  }
}

void check.async(
  'a cache of values',
  twoReaders(load => new EagerCache(load)),
)
void check.async(
  'a cache of promises',
  twoReaders(load => new PatientCache(load)),
)
void check.async(
  'a seat is sold when it is paid',
  lastSeat((seats, pay) => new TrustingHall(seats, pay)),
)
void check.async(
  'a seat is held while it is paid',
  lastSeat((seats, pay) => new HoldingHall(seats, pay)),
)
void check.async(
  'sessions that are read and written',
  twoRequests(store => new PlainSessions(store)),
)
void check.async(
  'sessions with a queue',
  twoRequests(store => new QueuedSessions(store)),
)
