import type { RingEvent } from '../../src/arena/rings/eventring.ts'
import { packEvents } from '../../src/trace/packedevents.ts'
import type { TaskSnapshot } from '../../src/trace/snapshot.ts'
import type { ViewListener, ViewReply, ViewSource } from '../../src/view/source.ts'
import { busyEvents } from './bigtrace.ts'

const EVENTS_MS = 33
const TASKS_EVERY = 8

/** A made-up running kernel: its events come in real time, and some tasks change with each snapshot. */
export class BusySource implements ViewSource {
  private readonly cpus: number
  private readonly tasks: number

  constructor(cpus: number, tasks: number) {
    this.cpus = cpus
    this.tasks = tasks
  }

  open(listen: ViewListener): () => void {
    const { cpus, tasks } = this
    listen({
      kind: 'hello',
      about: { title: 'busy', cpus, live: true, control: false, panels: ['timeline', 'tasks', 'locks'] },
    })
    const events = busyEvents(cpus, tasks, 0.25)
    const began = performance.now()
    let next: RingEvent = events.next().value
    let polls = 0
    const poll = (): void => {
      const now = performance.now() - began
      if (polls++ % TASKS_EVERY === 0) {
        const changed = polls === 1 ? tasks : Math.min(tasks, 1000)
        const from = (polls * 125) % tasks
        listen({
          kind: 'tasks',
          changes: {
            time: now,
            cpus: [],
            changed: Array.from({ length: changed }, (_, n) => snapshot((from + n) % tasks, cpus, now)),
            gone: [],
            locks: { locks: [], handoff: null },
          },
        })
      }
      const found: RingEvent[] = []
      for (; next.time <= now; next = events.next().value) found.push(next)
      found.sort((a, b) => a.ring - b.ring || a.time - b.time)
      listen({ kind: 'events', now, lost: 0, bytes: packEvents(found) })
    }
    poll()
    const timer = setInterval(poll, EVENTS_MS)
    return () => clearInterval(timer)
  }

  async ask(): Promise<ViewReply> {
    return { ok: true, done: false }
  }
}

function snapshot(slot: number, cpus: number, now: number): TaskSnapshot {
  return {
    id: slot + 1,
    slot,
    name: `worker ${slot}`,
    code: 'work',
    state: slot % 3 === 0 ? 'runnable' : 'sleeping',
    sleep: null,
    cpu: slot % cpus,
    started: true,
    priority: 128,
    basePriority: 128,
    nice: 0,
    runTime: now / 100 + slot / 1000,
    waitTime: now / 50,
    switches: Math.floor(now / 10),
    preemptions: 0,
    moves: 0,
    waitsFor: null,
    contendedLocks: 0,
    killed: false,
  }
}
