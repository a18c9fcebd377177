import type { RecordedStep } from '../report/recording.ts'
import type { AsyncEvent } from './agenda.ts'
import { FINAL, SETUP, type Witness } from './execution.ts'
import type { Hook, NodeHost } from './host.ts'
import { here, type Place, written } from './place.ts'

interface Row {
  readonly task: number
  readonly kind: string
  readonly target: string
  effect: string
  readonly place: Place | undefined
  readonly happens: boolean
}

const MAKES = {
  start: '',
  io: 'calls',
  timeout: 'sets',
  interval: 'sets',
  immediate: 'sets',
  message: 'posts',
} as const

/** How many rows a report shows; of a longer execution, from its beginning and its end. */
const ROWS_MAX = 80

/** Records the events of one execution, with the lines that started them. */
export class Recording implements Witness {
  private readonly rows: Row[] = []
  private readonly places = new Map<AsyncEvent, Place | undefined>()
  private readonly rowOf = new Map<AsyncEvent, Row>()
  private readonly host: NodeHost
  private readonly file: string | undefined
  private readonly names: readonly string[]
  private readonly hook: Hook
  /** Promises that have not settled: their task, and where they were made. */
  private readonly unsettled = new Map<number, { task: number; place: Place | undefined }>()
  private readonly open = new Set<number>()

  /**
   * `follow`: also find the promises that never settle. Not for an execution that will be cut off: Node's
   * hooks do not survive that.
   */
  constructor(host: NodeHost, names: readonly string[], follow: boolean, file: string | undefined) {
    this.host = host
    this.file = file
    this.names = names
    this.hook = host.promises(
      id => {
        const task = this.host.context.getStore()
        if (task !== undefined) this.unsettled.set(id, { task, place: here() })
      },
      id => this.unsettled.delete(id),
    )
    if (follow) this.hook.enable()
  }

  end(): void {
    this.hook.disable()
  }

  made(event: AsyncEvent): void {
    const place = event.kind === 'start' ? undefined : here(this.file)
    this.places.set(event, place)
    if (event.kind === 'start') this.open.add(event.task)
    else if (event.task !== SETUP) this.add(event.task, MAKES[event.kind], event.name, '', place, false)
  }

  happens(event: AsyncEvent): void {
    this.rowOf.set(event, this.add(event.task, '', event.name, '', this.places.get(event), true))
  }

  settled(event: AsyncEvent, how: string): void {
    const row = this.rowOf.get(event)
    if (row !== undefined) row.effect = how
  }

  ended(task: number, how: string): void {
    this.open.delete(task)
    this.add(task, '', how, '', undefined, false)
  }

  private add(
    task: number,
    kind: string,
    target: string,
    effect: string,
    place: Place | undefined,
    happens: boolean,
  ): Row {
    const row = { task, kind, target, effect, place, happens }
    this.rows.push(row)
    return row
  }

  /** The heads of the columns: the tasks, and the set-up and the final assertion if they have events. */
  columns(names: readonly string[]): string[] {
    const columns = [...names]
    if (this.has(SETUP) || this.rows.length > ROWS_MAX || this.has(FINAL)) columns.push('set-up')
    if (this.has(FINAL)) columns.push('final')
    return columns
  }

  private has(task: number): boolean {
    return this.rows.some(row => row.task === task)
  }

  steps(tasks: number): RecordedStep[] {
    const last = this.rows.findLast(({ happens }) => happens)
    const cut = this.rows.length - ROWS_MAX
    const gap: Row = {
      task: SETUP,
      kind: '…',
      target: `${cut} more`,
      effect: '',
      place: undefined,
      happens: false,
    }
    const shown =
      cut <= 0 ? this.rows : [...this.rows.slice(0, ROWS_MAX / 2), gap, ...this.rows.slice(-ROWS_MAX / 2)]
    return shown.map((row, index) => ({
      thread: row.task === SETUP ? tasks : row.task === FINAL ? tasks + 1 : row.task,
      kind: row.kind,
      target: row.target,
      index,
      effect: row.effect,
      file: row.place?.file ?? '',
      line: row.place?.line ?? 0,
      column: row.place?.column ?? 0,
      text: '',
      marked: row === last,
    }))
  }

  /** For a deadlock: where the tasks that have not ended wait. */
  waits(kind: string): string[] {
    if (kind !== 'deadlock') return []
    const lines: string[] = []
    for (const task of [...this.open].sort()) {
      const places = [...this.unsettled.values()].filter(
        each => each.task === task && each.place !== undefined,
      )
      const unique = [...new Set(places.map(({ place }) => written(place)))].slice(-3)
      if (unique.length > 0)
        lines.push(`${this.names[task]} has promises that never settle, made ${unique.join(', ')}`)
    }
    return lines
  }
}
