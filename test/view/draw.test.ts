import { expect, test } from 'vitest'
import { Timeline } from '../../src/trace/timeline.ts'
import { busyEvents } from '../../testing/view/bigtrace.ts'
import { ViewData } from '../../view/model/data.ts'
import { Chart, GUTTER } from '../../view/timeline/chart.ts'
import { draw, type Palette } from '../../view/timeline/draw.ts'

const EVENTS = 5000
const palette = new Proxy(
  { tasks: ['#000'] },
  { get: (target, key) => (key === 'tasks' ? target.tasks : '#000') },
)

/** Where the curves of arrows go, of a canvas that draws nothing. */
function curves(chart: Chart): number[][] {
  const found: number[][] = []
  let start: number[] = []
  const canvas: Record<string, (...values: number[]) => unknown> = {
    measureText: () => ({ width: 10 }),
    moveTo: (x, y) => (start = [x, y]),
    bezierCurveTo: (...values) => void found.push([...start, ...values]),
  }
  const context = new Proxy(canvas, {
    get: (target, key) => target[key as string] ?? (() => undefined),
    set: () => true,
  })
  draw(context as unknown as CanvasRenderingContext2D, chart, palette as unknown as Palette)
  return found
}

test('arrows that begin before the window do not cross the names, however far it is zoomed in', () => {
  const data = new ViewData()
  const timeline = new Timeline(data.trace, { cpus: 4 })
  let left = EVENTS
  for (const event of busyEvents(4, 40)) {
    timeline.event(event)
    if (--left === 0) break
  }
  timeline.close()
  const chart = new Chart(data)
  const { first, last } = data.trace
  chart.until = last
  let drawn = 0
  for (const parts of [1, 20, 400]) {
    const span = (last - first) / parts
    for (let part = 0; part < 20; part++) {
      const from = first + ((last - first - span) * part) / 20
      chart.window.show(from, from + span)
      for (const [fromX, , bendX] of curves(chart)) {
        drawn++
        expect(fromX).toBeGreaterThanOrEqual(GUTTER)
        expect(bendX).toBeGreaterThanOrEqual(GUTTER)
      }
    }
  }
  expect(drawn).toBeGreaterThan(100)
})
