import { here } from '../../thread/context.ts'
import { Domain, type DomainHandle } from './domain.ts'
import { domainTag } from './domainwords.ts'
import type { Futexes } from './futexes.ts'
import { inheritedDomain, leaveDomainToWorkers } from './inheritdomain.ts'

/** The domain that this thread is in while it is in no kernel. */
let joined: Domain | null = null

/**
 * The futexes of the domain that this thread is in. A thread that is in none joins one first: the domain of
 * the thread that started it, or else a new one.
 */
export function currentFutexes(): Futexes {
  if (here.futexes === null) {
    joined ??= inherit() ?? make()
    here.futexes = joined.futexes
  }
  return here.futexes as Futexes
}

function inherit(): Domain | null {
  const handle = inheritedDomain()
  return handle === undefined ? null : Domain.attach(handle)
}

function make(): Domain {
  const domain = Domain.create()
  leaveDomainToWorkers(domain.handle)
  return domain
}

/**
 * The domain that this thread is in, for `attach` on a thread that does not inherit it. Undefined on a thread
 * of a kernel.
 */
export function domainHandle(): DomainHandle | undefined {
  const futexes = currentFutexes()
  return joined !== null && futexes === joined.futexes ? joined.handle : undefined
}

/**
 * Joins a domain: for threads that cannot inherit one (a browser's workers), before they wait for anything.
 * On a thread that is in this domain already, nothing happens. A thread that is in another one is refused:
 * wakers of one domain do not find waiters of another.
 */
export function attach(handle: DomainHandle): void {
  if (here.futexes === null) {
    joined ??= inherit() ?? Domain.attach(handle)
    here.futexes = joined.futexes
  }
  if (domainTag(currentFutexes().context) !== handle.tag) {
    throw new Error(
      'attach(handle): this thread waits in another domain; attach before the first use of a lock, or boot one kernel',
    )
  }
}
