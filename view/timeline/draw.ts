import { formatAt } from '../format.ts'
import {
  type Lane,
  PREEMPTED,
  RUNNABLE,
  RUNNING,
  SLEEPING,
  STOPPED,
  WAITS_LOCK,
  YIELDS_LOCK,
} from '../model/lane.ts'
import { type Arrow, HANDS, MOVES, UNLOCKS, WAKES } from '../model/trace.ts'
import { type Chart, GUTTER, OVERVIEW, RULER, type Row } from './chart.ts'

/** The colours of the page, read from its style. */
export interface Palette {
  readonly bg: string
  readonly raised: string
  readonly line: string
  readonly text: string
  readonly dim: string
  readonly accent: string
  readonly running: string
  readonly runnable: string
  readonly preempted: string
  readonly sleeping: string
  readonly locked: string
  readonly stopped: string
  readonly moved: string
  readonly onRunning: string
  readonly tasks: readonly string[]
}

const ARROWS_MAX = 400
const MARKS_MAX = 200
const FONT = '11px system-ui, sans-serif'
/** A slice with less than this much room has no label. */
const LABEL_MIN = 26

/** Draws the whole time line. Its cost depends on the pixels, not on how many slices the trace has. */
export function draw(context: CanvasRenderingContext2D, chart: Chart, palette: Palette): void {
  const { width, height } = chart
  context.fillStyle = palette.bg
  context.fillRect(0, 0, width, height)
  context.font = FONT
  context.textBaseline = 'middle'
  drawGrid(context, chart, palette)
  context.save()
  context.beginPath()
  context.rect(0, RULER, width, height - RULER - OVERVIEW)
  context.clip()
  for (const row of chart.layout()) {
    const top = RULER + row.top - chart.scroll
    if (top + row.height < RULER || top > height - OVERVIEW) continue
    drawRow(context, chart, palette, row, top)
  }
  drawArrows(context, chart, palette)
  drawSelection(context, chart, palette)
  context.restore()
  drawRuler(context, chart, palette)
  drawOverview(context, chart, palette)
}

const rulerSteps = [1, 2, 5]

function stepOf(chart: Chart): number {
  const wanted = (chart.window.span / chart.chartWidth) * 110
  const power = 10 ** Math.floor(Math.log10(wanted))
  return power * (rulerSteps.find(step => step * power >= wanted) ?? 10)
}

function drawGrid(context: CanvasRenderingContext2D, chart: Chart, palette: Palette): void {
  const step = stepOf(chart)
  context.strokeStyle = palette.line
  context.globalAlpha = 0.55
  context.lineWidth = 1
  context.beginPath()
  for (let time = Math.ceil(chart.window.from / step) * step; time < chart.window.to; time += step) {
    const x = Math.round(chart.xOf(time)) + 0.5
    context.moveTo(x, RULER)
    context.lineTo(x, chart.height - OVERVIEW)
  }
  context.stroke()
  context.globalAlpha = 1
}

function drawRuler(context: CanvasRenderingContext2D, chart: Chart, palette: Palette): void {
  const step = stepOf(chart)
  context.fillStyle = palette.raised
  context.fillRect(0, 0, chart.width, RULER)
  context.fillStyle = palette.dim
  context.textAlign = 'left'
  for (let time = Math.ceil(chart.window.from / step) * step; time < chart.window.to; time += step) {
    const x = chart.xOf(time)
    if (time >= 0 && x >= GUTTER) context.fillText(formatAt(time, step), x + 4, RULER / 2)
  }
  context.fillRect(0, RULER - 1, chart.width, 1)
  context.fillStyle = palette.line
  context.fillRect(GUTTER - 1, 0, 1, chart.height - OVERVIEW)
}

function drawRow(
  context: CanvasRenderingContext2D,
  chart: Chart,
  palette: Palette,
  row: Row,
  top: number,
): void {
  const { lane, height } = row
  if (lane === null) {
    context.fillStyle = palette.raised
    context.fillRect(0, top, chart.width, height)
    context.fillStyle = palette.dim
    context.textAlign = 'left'
    const shown = chart.shownTasks().length
    const all = chart.data.trace.tasks.length
    const text =
      shown === all
        ? `Tasks (${all})`
        : `${shown} of ${all.toLocaleString('en')} tasks. Click a slice of a CPU, or find a task, to choose others`
    context.fillText(text, 10, top + height / 2)
    return
  }
  drawName(context, chart, palette, lane, top, height)
  context.save()
  context.beginPath()
  context.rect(GUTTER, top, chart.width - GUTTER, height)
  context.clip()
  drawSlices(context, chart, palette, lane, top, height)
  if (lane.track.kind !== 'cpu') drawMarks(context, chart, palette, lane, top, height)
  context.restore()
  context.fillStyle = palette.line
  context.globalAlpha = 0.5
  context.fillRect(0, top + height - 1, chart.width, 1)
  context.globalAlpha = 1
}

function drawName(
  context: CanvasRenderingContext2D,
  chart: Chart,
  palette: Palette,
  lane: Lane,
  top: number,
  height: number,
): void {
  const isFound = chart.found?.has(lane.track.id) === true
  context.fillStyle = palette.bg
  context.fillRect(0, top, GUTTER - 1, height - 1)
  if (lane.track.kind === 'task') {
    context.fillStyle = colourOf(palette, lane.track.id)
    context.fillRect(10, top + height / 2 - 4, 8, 8)
  }
  context.fillStyle = isFound || chart.selected?.lane === lane ? palette.accent : palette.text
  context.textAlign = 'left'
  const left = lane.track.kind === 'task' ? 24 : 10
  let room = GUTTER - left - 8
  if (lane.track.kind === 'cpu') {
    const from = Math.max(chart.window.from, chart.data.trace.first)
    const to = Math.min(chart.window.to, chart.until)
    const share = to <= from ? 0 : lane.covered(from, to, chart.until) / (to - from)
    const text = `${Math.round(Math.min(1, share) * 100)} %`
    context.textAlign = 'right'
    context.fillStyle = palette.dim
    context.fillText(text, GUTTER - 8, top + height / 2)
    context.textAlign = 'left'
    context.fillStyle = palette.text
    room -= 40
  }
  context.fillText(fitted(context, lane.track.name, room), left, top + height / 2)
}

/** A task has the same colour in its lane and on the CPUs. */
function colourOf(palette: Palette, track: number): string {
  // Tasks on one CPU often have numbers at equal distances: the product spreads them over the colours.
  return palette.tasks[(Math.imul(track, 0x9e37_79b1) >>> 24) % palette.tasks.length]
}

function drawSlices(
  context: CanvasRenderingContext2D,
  chart: Chart,
  palette: Palette,
  lane: Lane,
  top: number,
  height: number,
): void {
  const { window, until } = chart
  const perPixel = window.span / chart.chartWidth
  const isCpu = lane.track.kind === 'cpu'
  let row = lane.rowAfter(window.from)
  let x = -Infinity
  while (row < lane.count) {
    const start = lane.startOf(row)
    if (start > window.to || start > until) break
    const end = Math.min(lane.endOf(row), until)
    const left = Math.max(GUTTER, chart.xOf(start))
    const right = chart.xOf(end)
    if (right - left >= 1.2) {
      drawSlice(context, chart, palette, lane, row, left, right, top, height)
      x = right
      row++
      continue
    }
    // Narrow slices share a pixel: its shade is the part of the pixel that slices cover.
    const pixel = Math.floor(left)
    if (pixel > x - 1) {
      const from = chart.timeAt(pixel)
      const cover = Math.min(1, lane.covered(from, from + perPixel, until) / perPixel)
      context.globalAlpha = 0.25 + 0.75 * cover
      context.fillStyle = isCpu
        ? colourOf(palette, lane.otherOf(row))
        : stateColour(palette, lane.stateOf(row))
      const [inset, tall] = isCpu ? [4, height - 9] : insetOf(lane.stateOf(row), height)
      context.fillRect(pixel, top + inset, 1, tall)
      context.globalAlpha = 1
      x = pixel + 1
    }
    row = Math.max(row + 1, lane.rowAfter(chart.timeAt(pixel + 1)))
  }
}

/** Each state has its own height too, so that no state is told by colour alone. */
function insetOf(state: number, height: number): [inset: number, tall: number] {
  if (state === RUNNING) return [3, height - 7]
  if (state === RUNNABLE || state === PREEMPTED) return [height / 2 - 3, 6]
  if (state === WAITS_LOCK || state === YIELDS_LOCK) return [5, height - 11]
  return state === STOPPED ? [height / 2 - 2, 4] : [height / 2 - 1, 2]
}

function stateColour(palette: Palette, state: number): string {
  if (state === RUNNING) return palette.running
  if (state === RUNNABLE) return palette.runnable
  if (state === PREEMPTED) return palette.preempted
  if (state === WAITS_LOCK || state === YIELDS_LOCK) return palette.locked
  return state === STOPPED ? palette.stopped : palette.sleeping
}

function drawSlice(
  context: CanvasRenderingContext2D,
  chart: Chart,
  palette: Palette,
  lane: Lane,
  row: number,
  left: number,
  right: number,
  top: number,
  height: number,
): void {
  const isCpu = lane.track.kind === 'cpu'
  const state = lane.stateOf(row)
  const [inset, tall] = isCpu ? [4, height - 9] : insetOf(state, height)
  const width = Math.min(right, chart.width + 2) - left
  context.fillStyle = isCpu ? colourOf(palette, lane.otherOf(row)) : stateColour(palette, state)
  const isFaint = chart.found !== null && !chart.found.has(isCpu ? lane.otherOf(row) : lane.track.id)
  if (isFaint) context.globalAlpha = 0.3
  context.fillRect(left, top + inset, Math.max(1, width - 0.6), tall)
  if (state === WAITS_LOCK || state === YIELDS_LOCK) hatch(context, palette, left, top + inset, width, tall)
  context.globalAlpha = 1
  if (width < LABEL_MIN || state === SLEEPING || state === RUNNABLE || state === PREEMPTED) return
  const text = isCpu ? lane.nameOf(row) : labelOf(lane, row, state)
  context.fillStyle = isFaint ? palette.dim : palette.onRunning
  context.textAlign = 'left'
  const at = Math.max(left, GUTTER) + 5
  context.fillText(fitted(context, text, left + width - at - 4), at, top + height / 2)
}

/** Stripes, so that a wait for a lock differs from running also without colours. */
function hatch(
  context: CanvasRenderingContext2D,
  palette: Palette,
  left: number,
  top: number,
  width: number,
  height: number,
): void {
  context.save()
  context.beginPath()
  context.rect(left, top, width, height)
  context.clip()
  context.strokeStyle = palette.bg
  context.globalAlpha = 0.35
  context.beginPath()
  for (let x = left - height; x < left + width; x += 7) {
    context.moveTo(x, top + height)
    context.lineTo(x + height, top)
  }
  context.stroke()
  context.restore()
}

function labelOf(lane: Lane, row: number, state: number): string {
  if (state === RUNNING) return `CPU ${lane.otherOf(row) - 1}`
  const args = lane.argsOf(row)
  if (state === STOPPED) return 'stopped'
  const holder = args?.['waits for']
  return `lock ${args?.on ?? ''}${holder === undefined ? '' : ` of ${holder}`}`
}

function drawMarks(
  context: CanvasRenderingContext2D,
  chart: Chart,
  palette: Palette,
  lane: Lane,
  top: number,
  height: number,
): void {
  const marks = lane.marksIn(chart.window.from, Math.min(chart.window.to, chart.until), MARKS_MAX + 1)
  if (marks.length > MARKS_MAX) return
  for (const { time, name, args } of marks) {
    const x = chart.xOf(time)
    context.fillStyle = context.strokeStyle =
      name === 'exit' && Number(args?.code) > 1 ? palette.preempted : palette.text
    context.globalAlpha = 0.85
    if (name === 'exit') {
      // A cross: the task has ended, or was killed.
      context.lineWidth = 1.5
      context.beginPath()
      context.moveTo(x - 4, top + height / 2 - 4)
      context.lineTo(x + 4, top + height / 2 + 4)
      context.moveTo(x + 4, top + height / 2 - 4)
      context.lineTo(x - 4, top + height / 2 + 4)
      context.stroke()
    } else {
      context.fillStyle =
        name === 'boost' || name === 'unboost'
          ? palette.locked
          : name === 'migrates'
            ? palette.moved
            : palette.dim
      context.beginPath()
      context.moveTo(x, top + height - 8)
      context.lineTo(x + 4, top + height - 2)
      context.lineTo(x - 4, top + height - 2)
      context.fill()
    }
    context.globalAlpha = 1
  }
}

function drawArrows(context: CanvasRenderingContext2D, chart: Chart, palette: Palette): void {
  const { window, data, until } = chart
  const rows = new Map<number, number>()
  for (const { lane, top, height } of chart.layout()) {
    if (lane !== null) rows.set(lane.track.id, RULER + top + height / 2 - chart.scroll)
  }
  const arrows = data.trace.arrowsIn(window.from, Math.min(window.to, until), ARROWS_MAX)
  context.save()
  context.beginPath()
  context.rect(GUTTER, RULER, chart.width - GUTTER, chart.height - RULER - OVERVIEW)
  context.clip()
  // When there are too many to follow, only those of the selection are drawn.
  const focus = chart.selected === null ? 0 : focusOf(chart)
  const shown = arrows ?? (focus === 0 ? [] : (data.trace.arrowsIn(window.from, window.to, 20_000) ?? []))
  for (const arrow of shown) {
    const isOfFocus = focus !== 0 && (arrow.fromTask === focus || arrow.toTask === focus)
    if (arrows === null && !isOfFocus) continue
    context.globalAlpha = isOfFocus ? 1 : arrows !== null && arrows.length < 80 ? 0.65 : 0.35
    context.strokeStyle = context.fillStyle = arrowColour(palette, arrow)
    context.lineWidth = isOfFocus ? 1.6 : 1
    // Between the CPUs, and between the lanes of the two tasks where those are shown.
    drawArrow(context, chart, rows.get(arrow.fromTrack), rows.get(arrow.toTrack), arrow)
    const [from, to] = [rows.get(arrow.fromTask), rows.get(arrow.toTask)]
    if (arrow.fromTask !== arrow.toTask) drawArrow(context, chart, from, to, arrow)
  }
  context.restore()
}

function focusOf({ selected }: Chart): number {
  return selected === null ? 0 : selected.lane.track.kind === 'cpu' ? selected.other : selected.lane.track.id
}

function arrowColour(palette: Palette, { kind }: Arrow): string {
  if (kind === MOVES) return palette.moved
  return kind === HANDS || kind === UNLOCKS ? palette.locked : palette.dim
}

function drawArrow(
  context: CanvasRenderingContext2D,
  chart: Chart,
  fromY: number | undefined,
  toY: number | undefined,
  { kind, fromTime, toTime }: Arrow,
): void {
  if (fromY === undefined || toY === undefined || fromY === toY) return
  // One that begins before the window begins at its edge, not among the names.
  const fromX = Math.max(GUTTER, chart.xOf(fromTime))
  const toX = chart.xOf(toTime)
  if (toX < GUTTER || fromX > chart.width) return
  const down = toY > fromY ? 1 : -1
  context.setLineDash(kind === WAKES ? [] : kind === MOVES ? [2, 2] : [5, 3])
  context.beginPath()
  context.moveTo(fromX, fromY)
  const bend = Math.min(24, Math.max(6, (toX - fromX) / 2))
  context.bezierCurveTo(fromX + bend, fromY, toX - bend, toY, toX, toY - down * 3)
  context.stroke()
  context.setLineDash([])
  context.beginPath()
  context.moveTo(toX, toY)
  context.lineTo(toX - 3.5, toY - down * 7)
  context.lineTo(toX + 3.5, toY - down * 7)
  context.fill()
}

function drawSelection(context: CanvasRenderingContext2D, chart: Chart, palette: Palette): void {
  for (const slice of [chart.pointed, chart.selected]) {
    if (slice === null) continue
    const row = chart.layout().find(({ lane }) => lane === slice.lane)
    if (row === undefined) continue
    const left = Math.max(GUTTER, chart.xOf(slice.start))
    const right = Math.min(chart.width, chart.xOf(Math.min(slice.end, chart.until)))
    if (right < GUTTER || left > chart.width) continue
    context.strokeStyle = palette.text
    context.lineWidth = slice === chart.selected ? 2 : 1
    const top = RULER + row.top - chart.scroll
    context.strokeRect(left - 1, top + 2.5, Math.max(2, right - left + 1), row.height - 6)
  }
}

/** The whole trace, with the window in it. Darker: more CPUs are busy. */
function drawOverview(context: CanvasRenderingContext2D, chart: Chart, palette: Palette): void {
  const { trace } = chart.data
  const top = chart.height - OVERVIEW
  context.fillStyle = palette.raised
  context.fillRect(0, top, chart.width, OVERVIEW)
  context.fillStyle = palette.line
  context.fillRect(0, top, chart.width, 1)
  if (trace.first === Infinity || trace.cpus.length === 0) return
  const [first, last] = [trace.first, Math.max(chart.until, trace.first + 1)]
  context.fillStyle = palette.dim
  context.textAlign = 'left'
  context.fillText(formatAt(first, (last - first) / 100), 10, top + OVERVIEW / 2)
  context.textAlign = 'right'
  context.fillText(formatAt(last, (last - first) / 100), GUTTER - 8, top + OVERVIEW / 2)
  const step = 2
  const perStep = ((last - first) / chart.chartWidth) * step
  context.fillStyle = palette.running
  for (let x = 0; x < chart.chartWidth; x += step) {
    const from = first + (x / chart.chartWidth) * (last - first)
    let busy = 0
    for (const lane of trace.cpus) busy += lane.covered(from, from + perStep, last)
    const share = Math.min(1, busy / (perStep * trace.cpus.length))
    const tall = share * (OVERVIEW - 8)
    context.fillRect(GUTTER + x, top + OVERVIEW - 3 - tall, step, tall)
  }
  const scale = chart.chartWidth / (last - first)
  const left = GUTTER + Math.max(0, (chart.window.from - first) * scale)
  const right = GUTTER + Math.min(chart.chartWidth, (chart.window.to - first) * scale)
  context.fillStyle = palette.accent
  context.globalAlpha = 0.15
  context.fillRect(left, top + 1, Math.max(3, right - left), OVERVIEW - 1)
  context.globalAlpha = 1
  context.strokeStyle = palette.accent
  context.lineWidth = 1
  context.strokeRect(left + 0.5, top + 1.5, Math.max(3, right - left - 1), OVERVIEW - 3)
}

const widths = new Map<string, number>()

/** Cuts a text to a width in pixels. */
function fitted(context: CanvasRenderingContext2D, text: string, room: number): string {
  let width = widths.get(text)
  if (width === undefined) {
    if (widths.size > 20_000) widths.clear()
    width = context.measureText(text).width
    widths.set(text, width)
  }
  if (width <= room) return text
  const letters = Math.floor((text.length * room) / width) - 1
  return letters < 1 ? '' : `${text.slice(0, letters)}…`
}
