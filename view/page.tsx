import { render } from 'preact'
import type { MountedView } from '../src/view/index.ts'
import type { ViewSource } from '../src/view/source.ts'
import { App } from './app.tsx'
import { ServedSource } from './served.ts'
import { Session } from './session.ts'
import { sheet } from './style.ts'

/** Mounts the page into an element. The shadow root keeps the style of the page and of the view apart. */
export function mount(source: ViewSource, element: Element): MountedView {
  const root = element.shadowRoot ?? element.attachShadow({ mode: 'open' })
  root.adoptedStyleSheets = [sheet()]
  const host = document.createElement('div')
  host.className = 'view'
  root.replaceChildren(host)
  const session = new Session(source)
  render(<App session={session} />, host)
  session.open()
  return {
    show: panel => session.show(panel),
    close() {
      session.close()
      render(null, host)
      root.replaceChildren()
    },
  }
}

/** The page of the server: the whole window is the view. */
export function openServed(token: string): MountedView {
  const element = document.createElement('div')
  Object.assign(document.body.style, { margin: '0' })
  Object.assign(element.style, { position: 'fixed', inset: '0' })
  document.body.replaceChildren(element)
  return mount(new ServedSource(token), element)
}
