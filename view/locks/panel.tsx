import type { VNode } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Empty } from '../empty.tsx'
import { count, formatNs } from '../format.ts'
import { HistogramChart } from '../histogram.tsx'
import type { PanelProps } from '../session.ts'
import { Stack } from '../stack.tsx'
import { ChainDrawing, CircleDrawing } from './drawings.tsx'
import { chainsIn, cyclesIn, type Link, lockTitle } from './graph.ts'
import { type LockRow, lockRows } from './rows.ts'

const REFRESH_MS = 500
const CHAINS_SHOWN = 6

/** Holders, queues and contention; deadlocks and chains of priority inheritance as drawings. */
export function LocksPanel({ session }: PanelProps): VNode {
  const [, redraw] = useState(0)
  const [selected, select] = useState('')
  useEffect(() => {
    const timer = setInterval(() => redraw(n => n + 1), REFRESH_MS)
    return () => clearInterval(timer)
  }, [])
  const { data } = session
  const isLive = session.about?.live === true
  const rows = lockRows(data, isLive)
  const now = isLive ? data.locks.locks : []
  const cycles = cyclesIn(now)
  const chains = chainsIn(now)
  const chosen = rows.find(({ key }) => key === selected)
  if (rows.length === 0) {
    return (
      <Empty title="No contended locks">
        A lock is shown when a task has waited for it. <code>Kernel.boot({'{ debug: true }'})</code> also
        records locks that nobody waits for, and where each was taken.
      </Empty>
    )
  }
  return (
    <div class="split">
      <section class="scrolls" aria-label="Locks">
        {cycles.map(cycle => (
          <Deadlock key={cycle.map(({ party }) => party.tid).join()} links={cycle} />
        ))}
        {chains.length > 0 && (
          <section class="block">
            <h2>Waits, and the priorities that they lend</h2>
            {chains.slice(0, CHAINS_SHOWN).map(links => (
              <div class="wide" key={links.map(({ party }) => party.tid).join()}>
                <ChainDrawing links={links} />
              </div>
            ))}
            {chains.length > CHAINS_SHOWN && (
              <p class="dim">and {chains.length - CHAINS_SHOWN} more chains</p>
            )}
          </section>
        )}
        <section class="block">
          <h2>{count(rows.length, 'lock')}</h2>
          <Handoffs session={session} />
          <LockTable rows={rows} selected={selected} onSelect={select} />
        </section>
      </section>
      <aside>
        {chosen === undefined ? (
          <p class="dim">Select a lock to see its times and its queue.</p>
        ) : (
          <LockDetails row={chosen} />
        )}
      </aside>
    </div>
  )
}

function Deadlock({ links }: { links: readonly Link[] }): VNode {
  return (
    <section class="block deadlock" role="alert">
      <h2>Deadlock: each of these waits for the next</h2>
      <div class="circle">
        <CircleDrawing links={links} />
        <div class="stacks">
          {links.map(({ party, lock, holdStack }, at) => {
            // The stack of the hold belongs to the lock that the party before this one waits for.
            const before = links[(at + links.length - 1) % links.length]
            const holder = before.lock?.holders.find(({ tid }) => tid === party.tid)
            const held = holder?.stack || holdStack
            return (
              <div key={party.tid}>
                <h3>{party.name}</h3>
                <p>waits for {lock === null ? 'a lock' : lockTitle(lock)}, at</p>
                <Stack text={party.stack || 'its stack was not recorded'} />
                <p>holds {before.lock === null ? 'a lock' : lockTitle(before.lock)}, taken at</p>
                <Stack text={held || 'Kernel.boot({ debug: true }) records where a lock is taken'} />
              </div>
            )
          })}
        </div>
      </div>
    </section>
  )
}

/** How hand-off locks were acquired: by hand-off, by spinning, after a sleep. */
function Handoffs({ session }: PanelProps): VNode | null {
  const { handoff } = session.data.locks
  if (handoff === null) return null
  return (
    <dl class="counts" aria-label="Hand-off locks since boot">
      <Count label="Acquired" value={handoff.acquisitions} />
      <Count label="Contended" value={handoff.contended} />
      <Count label="By hand-off" value={handoff.handedOff} />
      <Count label="By spinning" value={handoff.spun} />
      <Count label="After a sleep" value={handoff.fallbacks} />
    </dl>
  )
}

function Count({ label, value }: { label: string; value: number }): VNode {
  return (
    <div>
      <dt>{label}</dt>
      <dd>{value.toLocaleString('en')}</dd>
    </div>
  )
}

interface TableProps {
  readonly rows: readonly LockRow[]
  readonly selected: string
  readonly onSelect: (key: string) => void
}

const SHOWN_MAX = 200

function LockTable({ rows, selected, onSelect }: TableProps): VNode {
  return (
    <table class="locks">
      <thead>
        <tr>
          <th>Lock</th>
          <th>Holder</th>
          <th>Queue</th>
          <th class="number">Contended</th>
          <th class="number">Handed over</th>
          <th class="number">Held, mean</th>
          <th class="number">Longest wait</th>
        </tr>
      </thead>
      <tbody>
        {rows.slice(0, SHOWN_MAX).map(row => (
          <tr key={row.key} aria-selected={row.key === selected}>
            <td>
              <button type="button" onClick={() => onSelect(row.key === selected ? '' : row.key)}>
                {row.title}
              </button>
            </td>
            <td>{row.holders.join(', ')}</td>
            <td>
              {row.waiters.length === 0
                ? ''
                : `${row.waiters.length}: ${row.waiters.slice(0, 3).join(', ')}${row.waiters.length > 3 ? ', …' : ''}`}
            </td>
            <td class="number">{row.use?.contended ?? ''}</td>
            <td class="number">{row.use?.handedOver ?? ''}</td>
            <td class="number">
              {row.use === undefined || row.use.holds.count === 0 ? '' : formatNs(row.use.holds.mean)}
            </td>
            <td class="number">
              {row.use === undefined || row.use.waits.count === 0 ? '' : formatNs(row.use.waits.longest)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function LockDetails({ row }: { row: LockRow }): VNode {
  const { use, now } = row
  const owners = [...(use?.owners ?? [])].sort((a, b) => b[1] - a[1]).slice(0, 8)
  return (
    <>
      <h2>{row.title}</h2>
      <dl class="facts">
        <div>
          <dt>Holder</dt>
          <dd>{row.holders.join(', ') || 'not known, or none'}</dd>
        </div>
        {use !== undefined && (
          <>
            <div>
              <dt>Contended</dt>
              <dd>{count(use.contended, 'time')}</dd>
            </div>
            <div>
              <dt>Acquired after a wait</dt>
              <dd>{count(use.acquired, 'time')}</dd>
            </div>
            <div>
              <dt>Handed over</dt>
              <dd>{count(use.handedOver, 'time')}</dd>
            </div>
          </>
        )}
      </dl>
      {use !== undefined && <HistogramChart title="Held" of={use.holds} />}
      {use !== undefined && <HistogramChart title="Waited for" of={use.waits} />}
      {row.waiters.length > 0 && (
        <>
          <h3>Its queue</h3>
          <ol class="queue">
            {row.waiters.map((waiter, at) => (
              <li key={at}>{waiter}</li>
            ))}
          </ol>
        </>
      )}
      {owners.length > 0 && (
        <>
          <h3>Waited for while held by</h3>
          <ol class="queue">
            {owners.map(([name, times]) => (
              <li key={name}>
                {name} <span class="dim">{count(times, 'time')}</span>
              </li>
            ))}
          </ol>
        </>
      )}
      {now?.holders.some(({ stack }) => stack !== '') && (
        <>
          <h3>Taken at</h3>
          <Stack text={now.holders.map(({ stack }) => stack).join('\n')} />
        </>
      )}
    </>
  )
}
