import { FUTEX_CMP_REQUEUE_PI, FUTEX_REQUEUE } from '../../src/futex/operations/call.ts'
import { FUTEX_TID_MASK } from '../../src/futex/core/owner.ts'
import { pointerTo, ROBUST_HEAD_BYTES } from '../../src/futex/robust/robust.ts'
import { type Actor, ActorBench, type Started } from './actors.ts'
import type { Kind } from './stage.ts'
import { ACTORS, type PiStep, WORDS } from './pi-script.ts'

const HEADS = 500
const HEAD_WORDS = 8
const LOCKS = 600
const LOCK_WORDS = 4
const OFFSET = 8
const WAITERS: number = 0x8000_0000 | 0
const DIED = 0x4000_0000

/** Runs a script on our futexes, and answers in the format of linux-pi.c. */
export class Play {
  private readonly bench: ActorBench
  private readonly actors: Actor[] = []
  private readonly tids: number[] = []
  private readonly calls = new Map<number, Started>()
  private readonly dead = new Set<number>()

  constructor(kind: Kind) {
    this.bench = new ActorBench(kind)
  }

  async run(script: readonly PiStep[]): Promise<string[]> {
    const { bench } = this
    const lines: string[] = []
    for (let at = 0; at < ACTORS; at++) {
      const actor = await bench.actor()
      this.actors.push(actor)
      this.tids.push(actor.tid)
      this.point(this.headOf(at), this.pointer(this.headOf(at)))
      bench.view[this.headOf(at) + 2] = OFFSET
      await actor.setRobustList(this.headOf(at), ROBUST_HEAD_BYTES)
    }
    for (const step of script) lines.push(await this.step(step))
    return lines
  }

  private headOf(actor: number): number {
    return HEADS + actor * HEAD_WORDS
  }

  private wordOf(lock: number): number {
    return LOCKS + lock * LOCK_WORDS + OFFSET / 4
  }

  private point(at: number, to: number): void {
    this.bench.mapped[0].f64[at / 2] = to
  }

  private pointer(index: number): number {
    return pointerTo(this.bench.mapped[0].name, index * 4)
  }

  private async step(step: PiStep): Promise<string> {
    let said = '0'
    let mine = -1
    if (step.kind === 'O') {
      const tid = step.actor < 0 ? 0 : this.tids[step.actor]
      const flags = ((step.flags & 1) !== 0 ? WAITERS : 0) | ((step.flags & 2) !== 0 ? DIED : 0)
      Atomics.store(this.bench.view, this.wordOf(step.word), flags | tid)
    } else if (step.kind === 'P') {
      await this.actors[step.actor].setPriority(120 - 4 * step.priority)
    } else if (this.dead.has(step.actor)) said = 'dead'
    else if (this.calls.has(step.actor)) said = 'busy'
    else {
      said = await this.act(step)
      mine = step.actor
    }
    let told = ''
    for (const [id, started] of [...this.calls].sort(([a], [b]) => a - b)) {
      if (!(await started.isDone())) continue
      const result = await started.result
      this.calls.delete(id)
      if (id === mine) said = String(result)
      else told += ` ${id}:${result}`
    }
    return `${said}${told} |${this.words()}`
  }

  private async act(step: PiStep & { kind: 'T' | 'F' | 'G' | 'R' | 'X' }): Promise<string> {
    const { bench } = this
    const { actor: id } = step
    const actor = this.actors[id]
    switch (step.kind) {
      case 'T': {
        const { op, value, timeout, val2, val3 } = step
        const started = await actor.start({
          op,
          word: this.wordOf(step.word),
          val: value,
          word2: this.wordOf(step.word2),
          val3,
          ...(timeout === 0
            ? { timeout: { sec: 0, nsec: 0 } }
            : [FUTEX_CMP_REQUEUE_PI, FUTEX_REQUEUE].includes(op & 127)
              ? { val2 }
              : {}),
        })
        this.calls.set(id, started)
        if (timeout === 0) await started.result
        return '-'
      }
      case 'R': {
        const entry = LOCKS + step.word * LOCK_WORDS
        this.point(entry, bench.mapped[0].f64[this.headOf(id) / 2])
        this.point(this.headOf(id), this.pointer(entry) + step.pi)
        return '0'
      }
      case 'X':
        this.dead.add(id)
        await actor.end()
        return '0'
      default: {
        const [from, to] = step.kind === 'F' ? [0, actor.tid] : [actor.tid, 0]
        const done = Atomics.compareExchange(bench.view, this.wordOf(step.word), from, to) === from
        return done ? '1' : '0'
      }
    }
  }

  private words(): string {
    let text = ''
    for (let at = 0; at < WORDS; at++) {
      const word = this.bench.view[this.wordOf(at)]
      const tid = word & FUTEX_TID_MASK
      const holder = tid === 0 ? 0 : this.tids.indexOf(tid) + 1 || 99
      text += ` ${(word & WAITERS) !== 0 ? 'W' : ''}${(word & DIED) !== 0 ? 'D' : ''}${holder}`
    }
    return text
  }
}
