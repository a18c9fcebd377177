import type { Futexes } from './futexes.ts'
import { Domain, type DomainHandle } from './domain.ts'
import { domainTag } from './domainwords.ts'
import { inheritedDomain, leaveDomainToWorkers } from './inheritdomain.ts'
import type { TaskWaiter } from './sleep.ts'

/**
 * What a thread needs in order to wait, found without passing it around. A CPU of the kernel is given its own
 * at boot. A plain thread joins the domain that the thread which started it is in; where there is none, the
 * first thread that asks makes one.
 */
export interface CurrentTask extends TaskWaiter {
  readonly tid: number
}

export interface Ambient {
  /** This thread's, in the space that all threads of the domain share. */
  readonly futexes: Futexes
  /** Of this thread, when no task runs on it. */
  readonly tid: number
  /** Whether `Atomics.wait` may be called here. */
  readonly mayBlock: boolean
  /** The task of the kernel that runs on this thread right now. */
  currentTask(): CurrentTask | null
}

let installed: Ambient | null = null
let joined: Domain | null = null

/** What this thread waits with from now on: a CPU's program calls it. Null: as if nobody had. */
export function setAmbient(next: Ambient | null): void {
  installed = next
}

/** The one that was set, or that of the domain that this thread inherits, or else of one that is made now. */
export function ambient(): Ambient {
  return installed ?? find()
}

/** As `ambient`, but null where none has been needed so far. */
export function currentAmbient(): Ambient | null {
  return installed
}

function find(): Ambient {
  joined ??= inherit() ?? make()
  installed = joined
  return joined
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
 * The domain that this thread is in, for `attach` on a thread that does not inherit it. Undefined on a CPU of
 * the kernel.
 */
export function domainHandle(): DomainHandle | undefined {
  ambient()
  return joined !== null && installed === joined ? joined.handle : undefined
}

/**
 * Joins a domain: for threads that cannot inherit one (a browser's workers), before they wait for anything.
 * On a thread that is in it already nothing happens; one that is in another is refused, because who waits in
 * one domain is not found from another.
 */
export function attach(handle: DomainHandle): void {
  if (installed === null) {
    joined = inherit() ?? Domain.attach(handle)
    installed = joined
  }
  if (domainTag(installed.futexes.context) !== handle.tag) {
    throw new Error(
      'attach(handle): this thread waits in another domain; attach before the first use of a lock, or boot one kernel',
    )
  }
}
