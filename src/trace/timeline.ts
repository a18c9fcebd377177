import {
  actorThread,
  BLOCK,
  BLOCK_FUTEX,
  blockNames,
  CONTINUE,
  CPU_DOWN,
  CPU_UP,
  EXIT,
  FUTEX,
  IDLE,
  LOCK_ACQUIRE,
  LOCK_CONTEND,
  LOCK_HANDOFF,
  MARK,
  MARK_NAME,
  MIGRATE,
  MOVE,
  NAME,
  NAME_REST,
  POLICY,
  PRIORITY,
  SPAWN,
  STOP,
  SWITCH,
  WAKEUP,
} from '../arena/rings/events.ts'
import type { RingEvent } from '../arena/rings/eventring.ts'
import { SWITCH_EXITS, SWITCH_SLEEPS, SWITCH_YIELDS } from '../sched/core/switch.ts'
import type { TrackArgs, TrackSink } from './tracks.ts'

/**
 * Turns the kernel's events, in order of time, into tracks: one for each CPU with the tasks that ran there,
 * one for each task with its states, arrows from waker to woken task and from unlock to lock, and counters. A
 * slot of the task slab that is used again is another task.
 */
export interface TimelineOptions {
  readonly cpus: number
  /** The name of a task that existed before the recording began, by slot. */
  readonly nameOf?: (slot: number) => string | undefined
  /** The names of policy events. */
  readonly policyNames?: readonly string[]
}

type State = 'new' | 'running' | 'runnable' | 'blocked' | 'stopped' | 'ended'

interface Life {
  readonly slot: number
  readonly track: number
  name: string
  nameBytes: number[] | null
  announced: boolean
  state: State
  priority: number
  /** Whether its slice on its own track is open. */
  open: boolean
  cpu: number
  /**
   * What the task announced to wait for: valid until its switch; for a lock, until it sleeps or acquires it.
   */
  blocks: { readonly why: string; readonly args: TrackArgs } | null
  stopped: boolean
  wakeArrow: number
}

interface CpuState {
  readonly track: number
  readonly depthTrack: number
  running: Life | null
  depth: number
}

const PROCESS = 1

const FOR_LOCK = 'blocked: lock'
/** The names of these instants begin so; the summary counts them. */
export const HANDS_OVER = 'hands over'
export const CONTENDED = 'lock contended'

const switchReasons: readonly string[] = ['preempted', 'blocked', 'yielded', 'finished']
const policyNames: readonly string[] = ['', 'loaded', 'unloaded', 'ejected']

export class Timeline {
  private readonly sink: TrackSink
  private readonly options: TimelineOptions
  private readonly cpus: CpuState[] = []
  private readonly lives = new Map<number, Life>()
  private readonly threads = new Map<number, number>()
  /** By lock, the arrow from its last unlock. */
  private readonly unlocks = new Map<number, number>()
  private readonly markNames = new Map<number, number[]>()
  private readonly runnableTrack: number
  private readonly busyTrack: number
  private runnable = 0
  private busy = 0
  private nextTrack = PROCESS + 1
  private nextArrow = 1
  private last = 0

  constructor(sink: TrackSink, options: TimelineOptions) {
    this.sink = sink
    this.options = options
    sink.track({ id: PROCESS, kind: 'process', name: 'heddle', parent: 0 })
    this.runnableTrack = this.newCounter('runnable tasks', 'tasks')
    this.busyTrack = this.newCounter('CPUs in use', 'CPUs')
    for (let cpu = 0; cpu < options.cpus; cpu++) {
      const track = this.nextTrack++
      sink.track({ id: track, kind: 'cpu', name: `CPU ${cpu}`, parent: PROCESS })
      const depthTrack = this.newCounter(`CPU ${cpu} queue`, 'tasks')
      this.cpus.push({ track, depthTrack, running: null, depth: 0 })
    }
  }

  /** Takes the next event. A time earlier than the last one is raised to the last one. */
  event(event: RingEvent): void {
    const time = (this.last = Math.max(this.last, Math.round(event.time * 1e6)))
    const { kind } = event
    if (kind === SWITCH) this.switch(time, event)
    else if (kind === WAKEUP) this.wakeup(time, event)
    else if (kind === SPAWN) this.spawn(time, event)
    else if (kind === NAME || kind === NAME_REST) this.name(event)
    else if (kind === EXIT) this.exit(time, event)
    else if (kind === MIGRATE) this.migrate(time, event)
    else if (kind === MOVE) this.move(time, event)
    else if (kind === STOP || kind === CONTINUE) this.stop(time, event)
    else if (kind === PRIORITY) this.priority(time, event)
    else if (kind === BLOCK) this.block(event)
    else if (kind >= LOCK_CONTEND && kind <= LOCK_HANDOFF) this.lock(time, event)
    else if (kind === MARK_NAME) this.markName(event)
    else if (kind === CPU_UP || kind === CPU_DOWN) this.cpuComesOrGoes(time, event)
    else this.other(time, event)
  }

  lost(count: number): void {
    this.sink.lost(this.last, count)
  }

  /** Ends all open slices: at `now`, in milliseconds of the kernel's clock, or at the last time seen. */
  close(now: number = 0): void {
    this.last = Math.max(this.last, Math.round(now * 1e6))
    for (const cpu of this.cpus) if (cpu.running !== null) this.sink.end(cpu.track, this.last)
    for (const life of this.lives.values()) if (life.open) this.sink.end(life.track, this.last)
    this.sink.close(this.last)
  }

  private switch(
    time: number,
    { ring, task, a: prev, b: why, c: priority, d: prevPriority }: RingEvent,
  ): void {
    const cpu = this.cpus[ring]
    if (cpu === undefined) return
    if (cpu.running !== null) this.sink.end(cpu.track, time, { why: switchReasons[why] ?? '' })
    if (prev !== IDLE) this.leaves(time, cpu, this.lifeOf(time, prev, prevPriority), why)
    cpu.running = task === IDLE ? null : this.lifeOf(time, task, priority)
    if (cpu.running !== null) this.runs(time, ring, cpu, cpu.running, priority)
    const busy = this.cpus.reduce((sum, { running }) => sum + (running === null ? 0 : 1), 0)
    if (busy !== this.busy) this.sink.counter(this.busyTrack, time, (this.busy = busy))
  }

  private leaves(time: number, cpu: CpuState, life: Life, why: number): void {
    if (why === SWITCH_EXITS) return this.setState(time, life, 'ended')
    if (life.stopped) return this.setState(time, life, 'stopped')
    if (why === SWITCH_SLEEPS) {
      const { blocks } = life
      life.blocks = null
      return this.setState(time, life, 'blocked', blocks?.why ?? 'blocked', blocks?.args)
    }
    this.setDepth(time, cpu, cpu.depth + 1)
    if (life.blocks?.why === FOR_LOCK) {
      this.setState(time, life, 'runnable', 'runnable (yields for a lock)', life.blocks.args)
      return
    }
    this.setState(time, life, 'runnable', why === SWITCH_YIELDS ? 'runnable' : 'runnable (preempted)')
  }

  private runs(time: number, ring: number, cpu: CpuState, life: Life, priority: number): void {
    if (life.state === 'runnable') this.setDepth(time, cpu, cpu.depth - 1)
    life.priority = priority
    const arrows = life.wakeArrow === 0 ? undefined : { ends: [life.wakeArrow] }
    life.wakeArrow = 0
    life.cpu = ring
    if (life.blocks?.why !== FOR_LOCK) life.blocks = null
    this.setState(time, life, 'running', `running on CPU ${ring}`, { priority })
    this.sink.begin(cpu.track, time, life.name, { priority, slot: life.slot }, arrows)
  }

  private wakeup(time: number, { ring, task, a: to, b: by, c: priority }: RingEvent): void {
    const life = this.lifeOf(time, task, priority)
    if (life.state === 'ended') return
    const arrow = this.nextArrow++
    this.sink.instant(
      this.actorTrack(time, ring, by),
      time,
      `wakes ${life.name}`,
      { cpu: to },
      { starts: [arrow] },
    )
    life.wakeArrow = arrow
    const cpu = this.cpus[to]
    if (cpu !== undefined && life.state !== 'runnable') this.setDepth(time, cpu, cpu.depth + 1)
    life.cpu = to
    this.setState(time, life, 'runnable', 'runnable', { 'woken by': this.actorName(by) })
  }

  private spawn(time: number, { task, a: by, b: priority }: RingEvent): void {
    const old = this.lives.get(task)
    if (old?.open) this.sink.end(old.track, time)
    const life = this.newLife(task, priority)
    life.nameBytes = []
    this.lives.set(task, life)
    life.blocks = { why: 'new', args: { 'spawned by': this.actorName(by) } }
  }

  private name({ kind, task, a, b, c, d }: RingEvent): void {
    const life = this.lives.get(task)
    if (life === undefined || life.announced || life.nameBytes === null) return
    const bytes = new Uint8Array(Int32Array.of(a, b, c, d).buffer)
    const end = bytes.indexOf(0)
    if (kind === NAME) life.nameBytes = []
    life.nameBytes.push(...(end < 0 ? bytes : bytes.subarray(0, end)))
    life.name = new TextDecoder().decode(Uint8Array.from(life.nameBytes))
  }

  private exit(time: number, { ring, task, a: code }: RingEvent): void {
    const life = this.lifeOf(time, task, -1)
    this.sink.instant(life.track, time, 'exit', { code, cpu: ring })
  }

  private migrate(time: number, { task, a: from, b: to }: RingEvent): void {
    const life = this.lifeOf(time, task, -1)
    if (life.state === 'runnable' && life.cpu !== to) {
      const [source, target] = [this.cpus[from], this.cpus[to]]
      if (source !== undefined) this.setDepth(time, source, source.depth - 1)
      if (target !== undefined) this.setDepth(time, target, target.depth + 1)
      life.cpu = to
    }
    this.sink.instant(life.track, time, 'migrates', { from, to })
  }

  /** A started task is packed: an arrow leads from here to where it runs next. */
  private move(time: number, { task, a: from, b: bytes }: RingEvent): void {
    const life = this.lifeOf(time, task, -1)
    const arrow = this.nextArrow++
    const track = this.cpus[from]?.track ?? life.track
    this.sink.instant(track, time, `moves ${life.name}`, { from, bytes }, { starts: [arrow] })
    life.wakeArrow = arrow
  }

  private stop(time: number, { kind, task, a: by }: RingEvent): void {
    const life = this.lifeOf(time, task, -1)
    life.stopped = kind === STOP
    this.sink.instant(life.track, time, kind === STOP ? 'stop' : 'continue', { by: this.actorName(by) })
    if (kind === STOP && life.state === 'runnable') {
      const cpu = this.cpus[life.cpu]
      if (cpu !== undefined) this.setDepth(time, cpu, cpu.depth - 1)
      this.setState(time, life, 'stopped')
    } else if (kind === CONTINUE && life.state === 'stopped') {
      const cpu = this.cpus[life.cpu]
      if (cpu !== undefined) this.setDepth(time, cpu, cpu.depth + 1)
      this.setState(time, life, 'runnable')
    }
  }

  private priority(time: number, { task, a: before, b: after, c: inherited }: RingEvent): void {
    const life = this.lifeOf(time, task, after)
    life.priority = after
    const name = inherited === 0 ? 'priority' : after < before ? 'boost' : 'unboost'
    this.sink.instant(life.track, time, name, { from: before, to: after })
  }

  private block({ task, a: why, b: what, c: whom }: RingEvent): void {
    const life = this.lives.get(task)
    if (life === undefined) return
    // The lock's event is more precise than that of its queue.
    if (whom === 0 && why === BLOCK_FUTEX && life.blocks?.why === FOR_LOCK) return
    this.waits(life, `blocked: ${blockNames[why] ?? why}`, what, whom)
  }

  private waits(life: Life, why: string, what: number, whom: number): void {
    const args: Record<string, string | number> = { on: what }
    if (whom !== 0) {
      args['waits for'] = this.actorName(whom)
      const owner = this.lives.get(whom)
      if (owner !== undefined) args['priority of that'] = owner.priority
      args.priority = life.priority
    }
    life.blocks = { why, args }
  }

  private lock(time: number, { kind, ring, task, a: lock, b }: RingEvent): void {
    const track = this.actorTrack(time, ring, task)
    if (kind === LOCK_CONTEND) {
      this.sink.instant(track, time, CONTENDED, {
        lock,
        owner: b === 0 ? 'unknown' : this.actorName(b),
      })
      const life = this.lives.get(task)
      if (life !== undefined) this.waits(life, FOR_LOCK, lock, b)
    } else if (kind === LOCK_ACQUIRE) {
      const life = this.lives.get(task)
      if (life !== undefined) life.blocks = null
      const arrow = b === 0 ? undefined : this.unlocks.get(lock)
      this.unlocks.delete(lock)
      this.sink.instant(track, time, 'lock', { lock }, arrow === undefined ? undefined : { ends: [arrow] })
    } else {
      const waited = kind === LOCK_HANDOFF || b !== 0
      const arrow = this.nextArrow++
      if (waited) this.unlocks.set(lock, arrow)
      const name = kind !== LOCK_HANDOFF ? 'unlock' : this.handOverName(b)
      this.sink.instant(track, time, name, { lock }, waited ? { starts: [arrow] } : undefined)
    }
  }

  private handOverName(to: number): string {
    return to === 0 ? HANDS_OVER : `${HANDS_OVER} to ${this.actorName(to)}`
  }

  private cpuComesOrGoes(time: number, { kind, a, b }: RingEvent): void {
    const cpu = this.cpus[a]
    if (cpu === undefined) return
    if (kind === CPU_DOWN && cpu.running !== null) {
      this.sink.end(cpu.track, time, { why: 'the CPU went' })
      cpu.running = null
    }
    this.sink.instant(cpu.track, time, kind === CPU_UP ? 'CPU up' : 'CPU down', { why: b })
  }

  private markName({ ring, a, b, c, d }: RingEvent): void {
    const name = this.markNames.get(ring) ?? []
    for (const byte of new Uint8Array(Int32Array.of(a, b, c, d).buffer)) if (byte !== 0) name.push(byte)
    this.markNames.set(ring, name)
  }

  private other(time: number, { kind, ring, task, a, b, c }: RingEvent): void {
    const track = this.actorTrack(time, ring, task)
    if (kind === FUTEX) this.sink.instant(track, time, 'futex', { op: a, word: b, result: c })
    else if (kind === MARK) {
      const value = new Float64Array(Int32Array.of(a, b).buffer)[0]
      const bytes = Uint8Array.from(this.markNames.get(ring) ?? [])
      this.markNames.delete(ring)
      const name = new TextDecoder().decode(bytes) || 'mark'
      this.sink.instant(track, time, name, Number.isNaN(value) ? undefined : { value })
    } else if (kind === POLICY) {
      this.sink.instant(track, time, `policy ${policyNames[a] ?? a}`, { detail: b })
    }
  }

  private lifeOf(time: number, slot: number, priority: number): Life {
    let life = this.lives.get(slot)
    if (life === undefined) {
      life = this.newLife(slot, priority)
      const name = this.options.nameOf?.(slot)
      if (name !== undefined) life.name = name
      this.lives.set(slot, life)
    }
    if (!life.announced) {
      life.announced = true
      this.sink.track({ id: life.track, kind: 'task', name: life.name, parent: PROCESS })
      if (life.blocks?.why === 'new') this.sink.instant(life.track, time, 'spawn', life.blocks.args)
    }
    return life
  }

  private newLife(slot: number, priority: number): Life {
    const track = this.nextTrack++
    return {
      slot,
      track,
      name: `task ${slot}`,
      nameBytes: null,
      announced: false,
      state: 'new',
      priority,
      open: false,
      cpu: -1,
      blocks: null,
      stopped: false,
      wakeArrow: 0,
    }
  }

  private setState(time: number, life: Life, state: State, label: string = state, args?: TrackArgs): void {
    if (life.state === state && state === 'runnable') return
    if (life.open) this.sink.end(life.track, time)
    const was = life.state === 'runnable' ? 1 : 0
    const is = state === 'runnable' ? 1 : 0
    life.state = state
    life.open = state !== 'ended'
    if (life.open) this.sink.begin(life.track, time, label, args)
    if (was !== is) this.sink.counter(this.runnableTrack, time, (this.runnable += is - was))
  }

  private setDepth(time: number, cpu: CpuState, depth: number): void {
    cpu.depth = Math.max(0, depth)
    this.sink.counter(cpu.depthTrack, time, cpu.depth)
  }

  /** The track of an actor: the CPU that it runs on, or its thread's own track. */
  private actorTrack(time: number, ring: number, actor: number): number {
    const cpu = this.cpus[ring]
    if (cpu !== undefined) return cpu.track
    if (actor >= 0) return this.lifeOf(time, actor, -1).track
    const thread = actorThread(actor)
    let track = this.threads.get(thread)
    if (track === undefined) {
      track = this.nextTrack++
      this.threads.set(thread, track)
      this.sink.track({ id: track, kind: 'thread', name: this.actorName(actor), parent: PROCESS })
    }
    return track
  }

  private actorName(actor: number): string {
    if (actor === IDLE) return 'idle'
    if (actor >= 0) return this.lives.get(actor)?.name ?? `task ${actor}`
    const thread = actorThread(actor)
    return thread === 64 ? 'main thread' : `thread ${thread}`
  }

  private newCounter(name: string, unit: string): number {
    const id = this.nextTrack++
    this.sink.track({ id, kind: 'counter', name, parent: PROCESS, unit })
    return id
  }
}
