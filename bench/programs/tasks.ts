'use task'

/**
 * An operating system in small: tasks with queues of packets, dispatched by class, in the manner of richards.
 */
export const size = 40
export const small = 1

interface Packet {
  kind: 'work' | 'device'
  from: number
  datum: number
  next: Packet | null
}

abstract class Job {
  readonly id: number
  readonly priority: number
  queue: Packet | null = null
  held = false
  waiting = true
  constructor(id: number, priority: number) {
    this.id = id
    this.priority = priority
  }
  accept(packet: Packet): void {
    packet.next = null
    if (this.queue === null) this.queue = packet
    else {
      let last = this.queue
      while (last.next !== null) last = last.next
      last.next = packet
    }
    this.waiting = false
  }
  take(): Packet | null {
    const packet = this.queue
    if (packet !== null) this.queue = packet.next
    return packet
  }
  runnable(): boolean {
    return !this.held && (this.queue !== null || !this.waiting)
  }
  abstract step(system: System): void
}

class Idler extends Job {
  seed = 1
  left: number
  constructor(id: number, left: number) {
    super(id, 0)
    this.left = left
    this.waiting = false
  }
  override step(system: System): void {
    if (--this.left <= 0) {
      this.waiting = true
      return
    }
    if ((this.seed & 1) === 0) {
      this.seed >>= 1
      system.release(3)
    } else {
      this.seed = (this.seed >> 1) ^ 0xd008
      system.release(4)
    }
  }
}

class Worker extends Job {
  target = 1
  override step(system: System): void {
    const packet = this.take()
    if (packet === null) {
      this.waiting = true
      return
    }
    this.target = this.target === 1 ? 2 : 1
    packet.datum = (packet.datum * 31 + this.id) & 0xffff
    packet.from = this.id
    system.send(this.target, packet)
  }
}

class Handler extends Job {
  handled = 0
  override step(system: System): void {
    const packet = this.take()
    if (packet === null) {
      this.waiting = true
      return
    }
    this.handled++
    packet.kind = packet.kind === 'work' ? 'device' : 'work'
    system.send(packet.kind === 'device' ? 3 + (packet.datum & 1) : 5, packet)
  }
}

class Device extends Job {
  override step(system: System): void {
    const packet = this.take()
    if (packet === null) {
      this.held = true
      return
    }
    system.send(packet.from === 5 ? 1 : 5, packet)
  }
}

class System {
  readonly jobs: Job[] = []
  sent = 0
  add(job: Job): void {
    this.jobs.push(job)
  }
  find(id: number): Job {
    for (const job of this.jobs) if (job.id === id) return job
    throw new Error(`no job ${id}`)
  }
  send(id: number, packet: Packet): void {
    this.sent++
    this.find(id).accept(packet)
  }
  release(id: number): void {
    this.find(id).held = false
  }
  schedule(): number {
    let turns = 0
    for (;;) {
      let best: Job | null = null
      for (const job of this.jobs) {
        if (job.runnable() && (best === null || job.priority > best.priority)) best = job
      }
      if (best === null) return turns
      turns++
      if (turns > 4000) return turns
      best.step(this)
    }
  }
}

export function run(rounds: number): number {
  let total = 0
  for (let round = 0; round < rounds; round++) {
    const system = new System()
    system.add(new Idler(0, 1000))
    system.add(new Handler(1, 20))
    system.add(new Handler(2, 21))
    system.add(new Device(3, 30))
    system.add(new Device(4, 31))
    system.add(new Worker(5, 10))
    for (let i = 0; i < 4; i++) system.send(5, { kind: 'work', from: 5, datum: i * 7 + round, next: null })
    total += system.schedule() + system.sent
  }
  return total
}
