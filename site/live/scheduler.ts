/** The live page of the kernel: four hogs and a short task, with preemption and without. */
import { Kernel } from '../../src/index.ts'
import { PerformanceTracks, record } from '../../src/trace/index.ts'
import { type MountedView, mountView } from '../../src/view/index.ts'
import { isolate } from './isolate.ts'

const CPUS = 2
const HOGS = 4
/** How long a hog computes, alone on a CPU. */
const HOG_MS = 900
const SLICE_MS = 5

const run = document.querySelector<HTMLButtonElement>('#run')!
const preempt = document.querySelector<HTMLInputElement>('#preempt')!
const state = document.querySelector<HTMLOutputElement>('#state')!
const results = document.querySelector<HTMLTableSectionElement>('#results tbody')!
const place = document.querySelector<HTMLElement>('#view')!

/** A run: the time of the short task, and how many hogs had ended before it. */
interface Row {
  readonly on: boolean
  readonly ms: number
  readonly ended: number
}

const rows: Row[] = []
let shown: { readonly kernel: Kernel; readonly view: MountedView } | undefined

async function start(): Promise<void> {
  const on = preempt.checked
  run.disabled = true
  try {
    await closeShown()
    say('The kernel boots…')
    const kernel = await Kernel.boot({ cpus: CPUS, slice: SLICE_MS })
    const work = await kernel.import<typeof import('./work.ts')>(new URL('./work.ts', import.meta.url))
    const view = await mountView(kernel, place, { title: on ? 'with preemption' : 'without preemption' })
    shown = { kernel, view }
    // A profile of Chrome's performance panel shows the same tracks.
    if (PerformanceTracks.isSupported) record(kernel, new PerformanceTracks(kernel))
    // How many rounds a hog of this machine needs, measured on a CPU of the kernel.
    const rounds = 4e6
    const before = performance.now()
    const hog = on ? work.hog : work.plainHog
    await kernel.spawn(hog, [rounds], { name: 'measure' })
    const needed = Math.ceil((rounds * HOG_MS) / Math.max(1, performance.now() - before))
    say('Four hogs compute…')
    let ended = 0
    const hogs = Array.from({ length: HOGS }, async (_, n) => {
      await kernel.spawn(hog, [needed], { name: `hog ${n + 1}` })
      ended++
    })
    await new Promise(resolve => setTimeout(resolve, 150))
    const spawned = performance.now()
    await kernel.spawn(work.short, [], { name: 'short task' })
    const ms = performance.now() - spawned
    // Hogs that ended before it are told in the same turn.
    await new Promise(resolve => setTimeout(resolve))
    add({ on, ms, ended })
    say('The short task has ended. The hogs go on…')
    await Promise.all(hogs)
    // The last events are on their way to the time line.
    await new Promise(resolve => setTimeout(resolve, 300))
    showWholeRun()
    say(
      `All tasks have ended. ${on ? 'Now turn preemption off, and run it again.' : 'Now turn it on again.'}`,
    )
  } catch (error) {
    say(`It failed: ${(error as Error).message}`)
  } finally {
    run.disabled = false
  }
}

/** The time line goes on with the clock; now it stands, with all of the run in it. */
function showWholeRun(): void {
  const buttons = [...(place.shadowRoot?.querySelectorAll('button') ?? [])]
  for (const name of ['Pause', 'Show all']) buttons.find(button => button.textContent === name)?.click()
}

async function closeShown(): Promise<void> {
  shown?.view.close()
  const kernel = shown?.kernel
  shown = undefined
  await kernel?.close()
}

function add(added: Row): void {
  rows.push(added)
  const most = Math.max(...rows.map(row => row.ms))
  results.replaceChildren(
    ...rows.map(row => {
      const line = document.createElement('tr')
      line.className = row.on ? 'on' : 'off'
      const [name, time, hogs, meter] = [0, 1, 2, 3].map(() => document.createElement('td'))
      name.textContent = row.on ? 'with preemption' : 'without preemption'
      time.textContent = `${row.ms.toFixed(1)} ms`
      time.className = 'time'
      hogs.textContent = `${row.ended} of ${HOGS} hogs ended before it`
      hogs.className = 'ended'
      meter.className = 'meter'
      const bar = document.createElement('span')
      bar.style.width = `${((100 * row.ms) / most).toFixed(2)}%`
      meter.append(bar)
      line.append(name, time, hogs, meter)
      return line
    }),
  )
}

function say(text: string): void {
  state.textContent = text
}

run.addEventListener('click', () => void start())
const isolated = await isolate()
if (isolated === '') {
  run.disabled = false
  say('Ready.')
} else say(isolated)
