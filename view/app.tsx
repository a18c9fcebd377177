import type { FunctionComponent, VNode } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { type PanelName, panelNames } from '../src/view/source.ts'
import { CheckerPanel } from './checker/panel.tsx'
import { LocksPanel } from './locks/panel.tsx'
import type { PanelProps, Session } from './session.ts'
import { SimulationPanel } from './simulation/panel.tsx'
import { TasksPanel } from './tasks/panel.tsx'
import { TimelinePanel } from './timeline/panel.tsx'

const panels: Readonly<Record<PanelName, readonly [title: string, panel: FunctionComponent<PanelProps>]>> = {
  timeline: ['Time line', TimelinePanel],
  tasks: ['Tasks', TasksPanel],
  locks: ['Locks', LocksPanel],
  checker: ['Checker', CheckerPanel],
  simulation: ['Simulation', SimulationPanel],
}

/** Draws again after each change of the session. */
export function useSession(session: Session): void {
  const [, redraw] = useState(0)
  useEffect(() => {
    const draw = (): void => redraw(n => n + 1)
    // Messages may have come before this effect.
    draw()
    return session.onChange(draw)
  }, [session])
}

/** The page: the title, the tabs, and one panel. */
export function App({ session }: PanelProps): VNode {
  useSession(session)
  const [, Panel] = panels[session.panel]
  return (
    <div class="app">
      <header>
        <h1>heddle</h1>
        <nav role="tablist" aria-label="Panels" onKeyDown={event => turnTab(event, session)}>
          {panelNames.map(name => (
            <button
              key={name}
              type="button"
              role="tab"
              id={`tab-${name}`}
              aria-selected={session.panel === name}
              tabIndex={session.panel === name ? 0 : -1}
              onClick={() => session.show(name)}
            >
              {panels[name][0]}
            </button>
          ))}
        </nav>
        <Status session={session} />
      </header>
      <main aria-labelledby={`tab-${session.panel}`}>
        <Panel session={session} />
      </main>
    </div>
  )
}

/** The arrow keys go from tab to tab, as in every list of tabs. */
function turnTab(event: KeyboardEvent, session: Session): void {
  const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0
  if (step === 0) return
  event.preventDefault()
  const at = (panelNames.indexOf(session.panel) + step + panelNames.length) % panelNames.length
  session.show(panelNames[at])
  const list = event.currentTarget as HTMLElement
  list.querySelectorAll<HTMLElement>('[role=tab]')[at].focus()
}

function Status({ session }: PanelProps): VNode {
  const { about, state, why } = session
  if (state === 'connecting') return <p class="status">connecting…</p>
  const mark = state === 'ended' ? 'ended' : about?.live ? 'live' : 'recorded'
  return (
    <p class={`status ${mark}`} title={why}>
      <strong>{about?.title ?? ''}</strong> <span class="mark">{mark}</span>
    </p>
  )
}
