import { type Chart, GUTTER, OVERVIEW } from './chart.ts'

const ZOOM_KEY = 1.4
const PAN_KEY = 0.12
const CLICK_PIXELS = 4

/** What input does besides changing the chart. */
export interface InputActions {
  /** The selection or the choice of tasks has changed. */
  changed(): void
  pause(): void
  find(): void
}

/**
 * Wheel, drag, pinch and keys on the canvas. One finger or the mouse pans, two fingers or the wheel zoom. A drag
 * in the overview scrubs. Returns the function that ends it.
 */
export function listenTo(canvas: HTMLCanvasElement, chart: Chart, actions: InputActions): () => void {
  const pointers = new Map<number, { x: number; y: number }>()
  let moved = 0
  let isScrubbing = false

  const place = (event: MouseEvent): { x: number; y: number } => {
    const box = canvas.getBoundingClientRect()
    return { x: event.clientX - box.left, y: event.clientY - box.top }
  }
  const scrub = (x: number): void => {
    const { trace } = chart.data
    if (trace.first === Infinity) return
    const share = (x - GUTTER) / chart.chartWidth
    const time = trace.first + share * (chart.until - trace.first)
    chart.window.show(time - chart.window.span / 2, time + chart.window.span / 2)
    actions.changed()
  }
  const onDown = (event: PointerEvent): void => {
    const at = place(event)
    canvas.setPointerCapture(event.pointerId)
    pointers.set(event.pointerId, at)
    moved = 0
    isScrubbing = at.y > chart.height - OVERVIEW
    if (isScrubbing) scrub(at.x)
  }
  const onMove = (event: PointerEvent): void => {
    const at = place(event)
    const before = pointers.get(event.pointerId)
    if (before === undefined) {
      chart.pointed = chart.sliceAt(at.x, at.y)
      actions.changed()
      return
    }
    moved += Math.abs(at.x - before.x) + Math.abs(at.y - before.y)
    if (isScrubbing) scrub(at.x)
    else if (pointers.size === 2) pinch(event.pointerId, before, at)
    else if (moved > CLICK_PIXELS) {
      if (at.x !== before.x) chart.window.pan((before.x - at.x) / chart.chartWidth)
      chart.scrollBy(before.y - at.y)
      actions.changed()
    }
    pointers.set(event.pointerId, at)
  }
  const pinch = (id: number, before: { x: number }, at: { x: number }): void => {
    const [other] = [...pointers].filter(([key]) => key !== id).map(([, point]) => point)
    const was = Math.abs(before.x - other.x)
    const is = Math.abs(at.x - other.x)
    const middle = (at.x + other.x) / 2
    if (was > 4 && is > 4) chart.window.zoom(was / is, (middle - GUTTER) / chart.chartWidth)
    chart.window.isFollowing = false
    actions.changed()
  }
  const onUp = (event: PointerEvent): void => {
    const at = place(event)
    pointers.delete(event.pointerId)
    if (moved > CLICK_PIXELS || isScrubbing || event.type === 'pointercancel') return
    const row = chart.rowAt(at.y)
    if (at.x < GUTTER && row?.lane?.track.kind === 'task') chart.toggle(row.lane.track.id)
    else {
      chart.selected = chart.sliceAt(at.x, at.y)
      const { selected } = chart
      if (selected !== null && selected.lane.track.kind === 'cpu' && chart.chosen.length > 0) {
        if (!chart.chosen.includes(selected.other)) chart.toggle(selected.other)
      }
    }
    actions.changed()
  }
  const onDouble = (): void => {
    if (chart.selected !== null) chart.reveal(chart.selected)
    actions.changed()
  }
  const onLeave = (): void => {
    chart.pointed = null
    actions.changed()
  }
  const onWheel = (event: WheelEvent): void => {
    event.preventDefault()
    const { x } = place(event)
    const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1
    const isSideways = Math.abs(event.deltaX) > Math.abs(event.deltaY)
    if (x < GUTTER) chart.scrollBy(event.deltaY * unit)
    else if (isSideways || event.shiftKey) {
      chart.window.pan(((isSideways ? event.deltaX : event.deltaY) * unit) / chart.chartWidth)
    } else {
      // A window that follows keeps its right edge at the newest events.
      const share = chart.window.isFollowing ? 1 : (x - GUTTER) / chart.chartWidth
      chart.window.zoom(Math.exp(event.deltaY * unit * 0.0022), share)
    }
    actions.changed()
  }
  const onKey = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || !press(event.key, chart, actions)) return
    event.preventDefault()
    actions.changed()
  }
  canvas.addEventListener('pointerdown', onDown)
  canvas.addEventListener('pointermove', onMove)
  canvas.addEventListener('pointerup', onUp)
  canvas.addEventListener('pointercancel', onUp)
  canvas.addEventListener('pointerleave', onLeave)
  canvas.addEventListener('dblclick', onDouble)
  canvas.addEventListener('wheel', onWheel, { passive: false })
  canvas.addEventListener('keydown', onKey)
  return () => {
    canvas.removeEventListener('pointerdown', onDown)
    canvas.removeEventListener('pointermove', onMove)
    canvas.removeEventListener('pointerup', onUp)
    canvas.removeEventListener('pointercancel', onUp)
    canvas.removeEventListener('pointerleave', onLeave)
    canvas.removeEventListener('dblclick', onDouble)
    canvas.removeEventListener('wheel', onWheel)
    canvas.removeEventListener('keydown', onKey)
  }
}

/** Returns whether the key means something here. */
function press(key: string, chart: Chart, actions: InputActions): boolean {
  const { window } = chart
  const share = window.isFollowing ? 1 : 0.5
  if (key === '+' || key === '=' || key === 'w') window.zoom(1 / ZOOM_KEY, share)
  else if (key === '-' || key === 's') window.zoom(ZOOM_KEY, share)
  else if (key === 'ArrowLeft' || key === 'a') window.pan(-PAN_KEY)
  else if (key === 'ArrowRight' || key === 'd') window.pan(PAN_KEY)
  else if (key === 'PageUp') window.pan(-0.9)
  else if (key === 'PageDown') window.pan(0.9)
  else if (key === 'ArrowUp') chart.stepLane(-1)
  else if (key === 'ArrowDown') chart.stepLane(1)
  else if (key === 'n') chart.step(1)
  else if (key === 'p') chart.step(-1)
  else if (key === 'Enter' && chart.selected !== null) chart.reveal(chart.selected)
  else if (key === 'Escape') chart.selected = null
  else if (key === 'Home') window.show(chart.data.trace.first, chart.data.trace.first + window.span)
  else if (key === 'End') window.isFollowing = true
  else if (key === '0') chart.fit()
  else if (key === ' ') actions.pause()
  else if (key === '/' || key === 'f') actions.find()
  else return false
  return true
}
