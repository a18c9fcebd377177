/** The live page of the checker: a check that is edited and explored in place. */
import { type MountedView, mountSource } from '../../src/view/index.ts'
import type { CheckerData, RerunReply } from '../../src/checker/report/checkview.ts'
import type { ViewListener, ViewReply, ViewRequest, ViewSource } from '../../src/view/source.ts'
import type { FromWorker, ToWorker } from './checkworker.ts'
import { examples } from './examples.ts'
import { isolate } from './isolate.ts'

const run = document.querySelector<HTMLButtonElement>('#run')!
const stop = document.querySelector<HTMLButtonElement>('#stop')!
const code = document.querySelector<HTMLTextAreaElement>('#code')!
const choice = document.querySelector<HTMLSelectElement>('#example')!
const state = document.querySelector<HTMLOutputElement>('#state')!
const wrong = document.querySelector<HTMLElement>('#error')!
const place = document.querySelector<HTMLElement>('#view')!

/** The worker that explores the text, as a source of the view. */
class WorkerSource implements ViewSource {
  private readonly worker = new Worker(new URL('./checkworker.ts', import.meta.url), { type: 'module' })
  private readonly listeners = new Set<ViewListener>()
  private readonly replies = new Map<number, (reply: RerunReply) => void>()
  private data: CheckerData = { checks: [], over: false, sources: {} }
  private asked = 0

  constructor(text: string, tell: (message: FromWorker) => void) {
    this.worker.addEventListener('message', ({ data }: MessageEvent<FromWorker>) => {
      if (data.kind === 'data') {
        this.data = data.data
        for (const listen of this.listeners) listen({ kind: 'checker', data: data.data })
      } else if (data.kind === 'reply') this.replies.get(data.id)?.(data.reply)
      tell(data)
    })
    this.worker.addEventListener('error', ({ message }) => tell({ kind: 'error', message }))
    this.post({ kind: 'explore', code: text })
  }

  open(listen: ViewListener): () => void {
    const about = { title: 'this page', cpus: 0, live: true, control: false, panels: ['checker'] as const }
    listen({ kind: 'hello', about })
    listen({ kind: 'checker', data: this.data })
    this.listeners.add(listen)
    return () => this.listeners.delete(listen)
  }

  async ask(request: ViewRequest): Promise<ViewReply> {
    if (request.op !== 'checker') return { ok: false, error: `${request.op}: this page has only checks` }
    const id = ++this.asked
    const reply = new Promise<RerunReply>(resolve => this.replies.set(id, resolve))
    this.post({ kind: 'ask', id, data: request.data })
    return { ok: true, data: await reply }
  }

  end(): void {
    this.worker.terminate()
  }

  private post(message: ToWorker): void {
    this.worker.postMessage(message)
  }
}

let source: WorkerSource | undefined
let view: MountedView | undefined

async function explore(): Promise<void> {
  end()
  wrong.hidden = true
  say('Exploring…')
  stop.disabled = false
  source = new WorkerSource(code.value, hear)
  view = await mountSource(source, place)
}

function hear(message: FromWorker): void {
  if (message.kind === 'error') {
    wrong.textContent = message.message
    wrong.hidden = false
    say('The check could not be run.')
    stop.disabled = true
  } else if (message.kind === 'data' && message.data.over) {
    stop.disabled = true
    say(message.data.checks.map(({ name, status }) => `${name}: ${status}`).join('; '))
  }
}

function end(): void {
  view?.close()
  source?.end()
  view = undefined
  source = undefined
  stop.disabled = true
}

function say(text: string): void {
  state.textContent = text
}

run.addEventListener('click', () => void explore())
stop.addEventListener('click', () => {
  end()
  say('Stopped.')
})
code.addEventListener('keydown', event => {
  if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) void explore()
})
choice.append(
  ...examples.map(({ name }) => {
    const option = document.createElement('option')
    option.textContent = name
    return option
  }),
)
choice.addEventListener('change', () => {
  code.value = examples[choice.selectedIndex].code
  void explore()
})
code.value = examples[0].code
const isolated = await isolate()
if (isolated === '') {
  run.disabled = false
  say('Ready.')
} else say(isolated)
