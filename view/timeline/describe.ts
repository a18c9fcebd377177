import { formatNs } from '../format.ts'
import {
  exitNames,
  PREEMPTED,
  RUNNABLE,
  RUNNING,
  type Slice,
  SLEEPING,
  stateNames,
  STOPPED,
  WAITS_LOCK,
  YIELDS_LOCK,
} from '../model/lane.ts'
import { arrowNames, type TraceModel } from '../model/trace.ts'

export interface Description {
  readonly title: string
  /** The track of the task; 0: there is none. */
  readonly task: number
  readonly facts: readonly (readonly [label: string, value: string])[]
}

/** What a slice is, how long it lasted, why it ended, and what caused it. */
export function describe(trace: TraceModel, slice: Slice, until: number): Description {
  const isCpu = slice.lane.track.kind === 'cpu'
  const task = isCpu ? slice.other : slice.lane.track.kind === 'task' ? slice.lane.track.id : 0
  const name = trace.lanes.get(task)?.track.name ?? slice.name
  const isOpen = slice.end === Infinity
  const length = formatNs(Math.min(slice.end, until) - slice.start)
  const where = isCpu ? slice.lane.track.name : slice.state === RUNNING ? `CPU ${slice.other - 1}` : ''
  const title = `${name}: ${stateNames[slice.state] || slice.name}${where === '' ? '' : ` on ${where}`}`
  const facts: [string, string][] = [
    ['How long', isOpen ? `${length} so far` : length],
    ['Began', formatNs(slice.start)],
  ]
  const why = causeOf(trace, slice, task)
  if (why !== '') facts.push(['Cause', why])
  if (!isOpen) facts.push(['Ended', endOf(trace, slice, task)])
  for (const [key, value] of Object.entries(slice.args ?? {})) {
    if (key === 'priority') facts.push(['Priority', String(value)])
    else if (key === 'priority of that') facts.push(["Holder's priority", String(value)])
  }
  return { title, task, facts }
}

function causeOf(trace: TraceModel, slice: Slice, task: number): string {
  const { state, args } = slice
  if (state === RUNNING) {
    const arrow = trace.arrowTo(task, slice.start)
    if (arrow === null) return 'the scheduler chose it'
    const by = trace.lanes.get(arrow.fromTask || arrow.fromTrack)?.track.name ?? 'another thread'
    return `${by} ${arrowNames[arrow.kind]} it, ${formatNs(arrow.toTime - arrow.fromTime)} before`
  }
  if (state === WAITS_LOCK || state === YIELDS_LOCK) {
    const holder = args?.['waits for']
    return `lock ${args?.on ?? '?'}${holder === undefined ? '' : `, which ${holder} holds`}`
  }
  if (state === RUNNABLE)
    return args?.['woken by'] === undefined ? 'it yielded' : `${args['woken by']} woke it`
  if (state === PREEMPTED) return 'its slice ended, or a more important task came'
  if (state === STOPPED) return 'a stop was requested'
  if (state === SLEEPING) return args?.on === undefined ? 'a sleep, a timer or input' : `futex ${args.on}`
  return ''
}

const endings: Readonly<Record<string, string>> = {
  preempted: 'it was preempted',
  blocked: 'it went to sleep',
  yielded: 'it yielded',
  finished: 'it finished',
}

function endOf(trace: TraceModel, slice: Slice, task: number): string {
  const given = slice.endArgs?.why
  if (given !== undefined && given !== '') return endings[given] ?? String(given)
  const next = slice.lane.track.kind === 'task' ? slice.lane.numbered(slice.number + 1) : null
  if (next === null) {
    const [exit] =
      trace.lanes
        .get(task)
        ?.marksIn(slice.end - 1e6, slice.end + 1e6, 50)
        .filter(({ name }) => name === 'exit') ?? []
    return exit === undefined ? '' : `it ${exitNames[Number(exit.args?.code)] ?? 'ended'}`
  }
  if (next.state === RUNNING) return `CPU ${next.other - 1} ran it`
  if (next.state === RUNNABLE)
    return next.args?.['woken by'] === undefined ? 'it yielded' : `${next.args['woken by']} woke it`
  return `then ${stateNames[next.state]}`
}
