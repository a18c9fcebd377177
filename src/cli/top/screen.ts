import { bar, type Colour, fit, formatMs, paint, type Terminal } from '../terminal.ts'
import { cursor, listed, type TaskRow, type TopModel } from './model.ts'

/** Draws the model: as many lines as the terminal has rows, none wider than the terminal. */
export function draw(model: TopModel, title: string, terminal: Terminal): string[] {
  const { rows: height } = terminal
  if (model.mode === 'help') return help(terminal).slice(0, height)
  const head = heading(model, title, terminal)
  const rows = listed(model)
  const foot = footer(model, terminal)
  const room = Math.max(0, height - head.length - 1 - foot.length)
  const at = cursor(model, rows)
  const from = Math.max(0, Math.min(at - (room >> 1), rows.length - room))
  const widths = columnsOf(terminal.columns)
  const body = rows
    .slice(from, from + room)
    .map((row, n) => taskLine(row, model.hasCursor && from + n === at, widths, terminal))
  if (rows.length === 0) body.push(model.filter === '' ? 'no tasks' : `no task matches "${model.filter}"`)
  while (body.length < room) body.push('')
  return [...head, columnLine(model, widths, terminal), ...body, ...foot]
}

function heading(model: TopModel, title: string, terminal: Terminal): string[] {
  const { snapshot } = model
  if (snapshot === null) return [title, 'waiting for the first snapshot …']
  const count = (state: TaskRow['state']): number => model.rows.filter(row => row.state === state).length
  const summary = `up ${formatMs(snapshot.time)}  ${model.rows.length} tasks: ${count('running')} running, ${count('runnable')} runnable, ${count('sleeping')} sleeping, ${count('stopped')} stopped`
  const lines = [paint(terminal, 'bold', fit(terminal, `${title}  ${summary}`, terminal.columns)), '']
  const width = Math.max(10, Math.min(40, terminal.columns - 46))
  for (const [at, cpu] of snapshot.cpus.entries()) {
    const share = Math.min(1, model.cpuShares[at] ?? 0)
    const colour: Colour = share > 0.9 ? 'red' : share > 0.5 ? 'yellow' : 'green'
    const filled = paint(terminal, colour, bar(terminal, share, width))
    const percent = `${(share * 100).toFixed(0).padStart(3)} %`
    const rest = cpu.online ? `${String(cpu.load).padStart(4)} queued  ${cpu.running ?? 'idle'}` : ' offline'
    lines.push(
      `CPU ${String(cpu.cpu).padStart(2)} ${filled} ${percent}${fit(terminal, rest, terminal.columns - width - 14)}`,
    )
  }
  lines.push('')
  return lines
}

interface Column {
  readonly title: string
  readonly width: number
  readonly text: (row: TaskRow) => string
  readonly left?: boolean
}

const fixed: readonly Column[] = [
  { title: 'ID', width: 7, text: row => String(row.id) },
  { title: 'STATE', width: 8, left: true, text: row => row.state },
  { title: 'CPU', width: 3, text: row => (row.started ? String(row.cpu) : '-') },
  {
    title: 'PRIO',
    width: 9,
    text: row =>
      row.priority < row.basePriority ? `${row.basePriority}^${row.priority}` : String(row.priority),
  },
  { title: '%CPU', width: 5, text: row => (row.share * 100).toFixed(0) },
  { title: 'TIME', width: 8, text: row => formatMs(row.runTime) },
  { title: 'WAIT', width: 8, text: row => formatMs(row.waitTime) },
  { title: 'WAITS FOR', width: 14, left: true, text: row => row.waitsFor ?? row.sleep ?? '' },
  { title: 'MOVES', width: 5, text: row => (row.moves === 0 ? '' : String(row.moves)) },
  { title: 'LOCKS', width: 5, text: row => (row.contendedLocks === 0 ? '' : String(row.contendedLocks)) },
]

/** The columns that fit, and one for the name, which takes the remaining width. */
function columnsOf(columns: number): readonly Column[] {
  const shown: Column[] = []
  let used = 12
  for (const column of fixed) {
    if (used + column.width + 1 > columns) break
    used += column.width + 1
    shown.push(column)
  }
  const width = Math.max(8, columns - used + 12 - 1)
  return [
    ...shown,
    { title: 'NAME', width, left: true, text: row => `${row.name}${row.killed ? ' (killed)' : ''}` },
  ]
}

const pad = (text: string, { width, left }: Column): string =>
  left ? text.padEnd(width) : text.padStart(width)

function columnLine(model: TopModel, columns: readonly Column[], terminal: Terminal): string {
  const line = columns.map(column => pad(column.title, column)).join(' ')
  const order = `  by ${model.sort}${model.reverse ? ', reversed' : ''}`
  const cut = fit(terminal, line.trimEnd() + order, terminal.columns)
  return terminal.colour ? paint(terminal, 'inverse', cut.padEnd(terminal.columns)) : cut
}

const colours: Readonly<Partial<Record<TaskRow['state'], Colour>>> = {
  running: 'green',
  stopped: 'red',
  sleeping: 'dim',
}

function taskLine(row: TaskRow, selected: boolean, columns: readonly Column[], terminal: Terminal): string {
  const line = columns.map(column => pad(fit(terminal, column.text(row), column.width), column)).join(' ')
  const cut = fit(terminal, line.trimEnd(), terminal.columns - 2)
  if (selected) return terminal.colour ? paint(terminal, 'inverse', cut) : `>${cut.replace(/^ /, '')}`
  const colour = colours[row.state]
  return colour === undefined ? cut : paint(terminal, colour, cut)
}

function footer(model: TopModel, terminal: Terminal): string[] {
  if (model.mode === 'filter') return [`filter: ${model.input}_`]
  if (model.mode === 'priority') {
    return [`priority of ${model.selected} (realtime, high, normal, low, idle or 4 to 251): ${model.input}_`]
  }
  const keys = 'q quit  ↑↓ select  s stop  c continue  k kill  p priority  o order  / filter  h help'
  const shown = terminal.unicode ? keys : keys.replace('↑↓', 'arrows')
  const said = model.message !== '' ? model.message : `${model.paused ? '[paused] ' : ''}${shown}`
  return [paint(terminal, 'dim', fit(terminal, said, terminal.columns))]
}

function help(terminal: Terminal): string[] {
  return [
    paint(terminal, 'bold', 'heddle top'),
    '',
    '  up, down, page up, page down   select a task',
    '  s  stop it          c  continue it',
    '  k  kill it          p  change its priority',
    '  o  order by the next column    r  reverse the order',
    '  /  show only names (or a state) with a text in them; escape shows all',
    '  space  pause the display       q  quit',
    '',
    '  PRIO   smaller runs first; 128^40 is a task of priority 128 that inherits 40',
    '  WAIT   time in which the task was runnable and had no CPU',
    '  MOVES  moves to another CPU after its start    LOCKS  locks that it holds and others wait for',
    '',
    'any key closes this page',
  ]
}
