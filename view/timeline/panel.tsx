import type { VNode } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { Empty } from '../empty.tsx'
import { count } from '../format.ts'
import type { PanelProps, Session } from '../session.ts'
import { Chart } from './chart.ts'
import { describe } from './describe.ts'
import { draw } from './draw.ts'
import { find, type Finding } from './find.ts'
import { listenTo } from './input.ts'
import { paletteOf } from './palette.ts'

const charts = new WeakMap<Session, Chart>()

/** The chart of a session: the window and the choice stay when another panel is shown in between. */
export function chartOf(session: Session): Chart {
  let chart = charts.get(session)
  if (chart === undefined) {
    chart = new Chart(session.data)
    charts.set(session, chart)
  }
  return chart
}

export function TimelinePanel({ session }: PanelProps): VNode {
  const chart = chartOf(session)
  const canvas = useRef<HTMLCanvasElement>(null)
  const finder = useRef<HTMLInputElement>(null)
  const [, redraw] = useState(0)
  const isLive = session.about?.live === true && session.state === 'open'
  const { trace, error } = session.data

  useEffect(() => {
    const element = canvas.current
    if (element === null) return undefined
    const stopDrawing = drawAlways(element, chart, session)
    const stopListening = listenTo(element, chart, {
      changed: () => redraw(n => n + 1),
      pause: () => {
        chart.window.isFollowing = !chart.window.isFollowing
      },
      find: () => finder.current?.focus(),
    })
    // Texts change with new events, but no more often than they can be read.
    const timer = setInterval(() => redraw(n => n + 1), 250)
    return () => {
      clearInterval(timer)
      stopDrawing()
      stopListening()
    }
  }, [chart, session, error])

  if (error !== null) {
    return (
      <Empty title="This is no trace">
        {error}. Open a file that <code>heddle run --trace</code> or a flight recorder wrote.
      </Empty>
    )
  }
  const { window: shown } = chart
  const change = (act: () => void) => (): void => {
    act()
    redraw(n => n + 1)
    canvas.current?.focus()
  }
  return (
    <div class="timeline">
      <div class="tools">
        {isLive && (
          <button
            type="button"
            aria-pressed={!shown.isFollowing}
            title="Space"
            onClick={change(() => (shown.isFollowing = !shown.isFollowing))}
          >
            {shown.isFollowing ? 'Pause' : 'Go live'}
          </button>
        )}
        <button
          type="button"
          title="+"
          aria-label="Zoom in"
          onClick={change(() => shown.zoom(1 / 1.6, shown.isFollowing ? 1 : 0.5))}
        >
          +
        </button>
        <button
          type="button"
          title="-"
          aria-label="Zoom out"
          onClick={change(() => shown.zoom(1.6, shown.isFollowing ? 1 : 0.5))}
        >
          −
        </button>
        <button type="button" title="0" onClick={change(() => chart.fit())}>
          Show all
        </button>
        <Finder session={session} chart={chart} input={finder} onChange={() => redraw(n => n + 1)} />
        {chart.chosen.length > 0 && (
          <button type="button" onClick={change(() => chart.chosen.splice(0))}>
            Clear {count(chart.chosen.length, 'chosen task')}
          </button>
        )}
        <Legend />
        <span class="figures">
          {count(trace.events, 'event')}
          {trace.lostEvents > 0 && <strong> {count(trace.lostEvents, 'event')} lost</strong>}
        </span>
      </div>
      <canvas
        ref={canvas}
        class="lanes"
        data-from={Math.round(shown.from)}
        data-span={Math.round(shown.span)}
        tabIndex={0}
        role="application"
        aria-label="Time line. Arrow keys move, plus and minus zoom, up and down select a lane, n and p the next and previous slice, slash finds, space pauses."
      />
      <Details chart={chart} isLive={isLive} onChange={() => redraw(n => n + 1)} />
    </div>
  )
}

/** Draws at each frame of the display while something can have changed. */
function drawAlways(canvas: HTMLCanvasElement, chart: Chart, session: Session): () => void {
  const context = canvas.getContext('2d', { alpha: false })!
  const media = matchMedia('(prefers-color-scheme: dark)')
  let palette = paletteOf(canvas)
  const onScheme = (): void => {
    palette = paletteOf(canvas)
  }
  media.addEventListener('change', onScheme)
  let isFirst = true
  let frame = 0
  const paint = (): void => {
    frame = requestAnimationFrame(paint)
    const { clientWidth: width, clientHeight: height } = canvas
    if (width === 0 || height === 0) return
    const scale = devicePixelRatio
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      canvas.width = Math.round(width * scale)
      canvas.height = Math.round(height * scale)
    }
    context.setTransform(scale, 0, 0, scale, 0, 0)
    chart.width = width
    chart.height = height
    chart.isLive = session.about?.live === true && session.state === 'open'
    chart.until = session.data.shownUntil(chart.isLive)
    const isRecorded = session.about?.live === false
    if (
      isFirst &&
      (isRecorded || session.state === 'ended') &&
      session.data.trace.first !== Infinity &&
      chart.window.isFollowing
    ) {
      isFirst = false
      chart.fit()
    }
    chart.window.follow(chart.until)
    chart.window.clamp(session.data.trace.first, chart.until)
    chart.scrollBy(0)
    draw(context, chart, palette)
  }
  paint()
  return () => {
    cancelAnimationFrame(frame)
    media.removeEventListener('change', onScheme)
  }
}

interface FinderProps {
  readonly session: Session
  readonly chart: Chart
  readonly input: { current: HTMLInputElement | null }
  readonly onChange: () => void
}

function Finder({ session, chart, input, onChange }: FinderProps): VNode {
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const [isOpen, setOpen] = useState(false)
  const found = useMemo(
    () => find(session.data, text),
    [session, text, Math.floor(session.data.trace.tasks.length / 10)],
  )
  const search = (wanted: string): void => {
    setText(wanted)
    setAt(0)
    setOpen(true)
    const findings = find(session.data, wanted)
    chart.found = wanted.trim() === '' ? null : new Set(findings.flatMap(({ tracks }) => tracks))
    onChange()
  }
  const choose = ({ tracks }: Finding): void => {
    for (const track of tracks) if (!chart.chosen.includes(track)) chart.toggle(track)
    chart.found = new Set(tracks)
    setOpen(false)
    chart.scrollBy(Infinity)
    onChange()
  }
  const onKey = (event: KeyboardEvent): void => {
    if (event.key === 'ArrowDown') setAt(Math.min(found.length - 1, at + 1))
    else if (event.key === 'ArrowUp') setAt(Math.max(0, at - 1))
    else if (event.key === 'Enter' && found[at] !== undefined) choose(found[at])
    else if (event.key === 'Escape') {
      search('')
      setOpen(false)
    } else return
    event.preventDefault()
  }
  return (
    <div class="finder">
      <input
        ref={input}
        type="search"
        aria-controls="findings"
        aria-label="Find a task, a lock or a function"
        placeholder="Find task, lock, function"
        value={text}
        onInput={event => search(event.currentTarget.value)}
        onKeyDown={onKey}
        onBlur={() => setTimeout(() => setOpen(false), 150)}
      />
      {isOpen && text.trim() !== '' && (
        <ul id="findings" role="listbox">
          {found.length === 0 && <li class="none">nothing has this name</li>}
          {found.map((finding, row) => (
            <li
              key={`${finding.what}${finding.tracks[0]}${finding.name}`}
              role="option"
              aria-selected={row === at}
              onPointerDown={() => choose(finding)}
            >
              <span class="kind">{finding.what}</span> {finding.name}{' '}
              <span class="dim">{finding.detail}</span>
            </li>
          ))}
        </ul>
      )}
    </div>
  )
}

const legend: readonly (readonly [state: string, text: string])[] = [
  ['running', 'running'],
  ['runnable', 'runnable'],
  ['preempted', 'preempted'],
  ['locked', 'waits for a lock'],
  ['sleeping', 'asleep'],
  ['stopped', 'stopped'],
]

function Legend(): VNode {
  return (
    <ul class="legend" aria-label="States">
      {legend.map(([state, text]) => (
        <li key={state}>
          <i class={`swatch ${state}`} /> {text}
        </li>
      ))}
    </ul>
  )
}

/** The line below the lanes: the slice under the pointer, else the selected one. It never changes its height. */
function Details({
  chart,
  isLive,
  onChange,
}: {
  chart: Chart
  isLive: boolean
  onChange: () => void
}): VNode {
  const slice = chart.pointed ?? chart.selected
  // A slice that was open when it was selected may have ended since.
  const fresh = slice === null ? null : slice.lane.numbered(slice.number)
  if (fresh === null) {
    const rest = isLive ? ' Space pauses.' : ''
    return (
      <div class="details dim">
        Point at a slice to see what it is. Drag or arrow keys move, the wheel or + and − zoom, / finds.{rest}
      </div>
    )
  }
  const { title, task, facts } = describe(chart.data.trace, fresh, chart.until)
  const isChosen = chart.chosen.includes(task)
  return (
    <div class="details" aria-live="polite">
      <strong>{title}</strong>
      <dl>
        {facts.map(([label, value]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {task !== 0 && (
        <button
          type="button"
          onClick={() => {
            chart.toggle(task)
            onChange()
          }}
        >
          {isChosen ? 'Remove its lane' : 'Choose its lane'}
        </button>
      )}
    </div>
  )
}
