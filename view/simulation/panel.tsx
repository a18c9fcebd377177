import type { VNode } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { SimulationData, SimulationRequest, SimulationStep } from '../../src/view/simulation.ts'
import { Empty } from '../empty.tsx'
import type { PanelProps } from '../session.ts'
import { Lanes } from './lanes.tsx'

const buttons: readonly (readonly [SimulationStep, string, string, string])[] = [
  ['step', 'Step', '.', 'One CPU runs to its next safepoint or kernel call'],
  ['switch', 'Switch', 's', 'Until another task begins to run on a CPU'],
  ['slice', 'Slice', 'l', 'Until a slice ends, or a task leaves its CPU'],
  ['run', 'Run', 'r', 'On without a stop'],
  ['pause', 'Pause', 'p', 'Stop at the next step'],
]

/** A simulated program: its virtual CPUs advance by the step, the switch or the slice. */
export function SimulationPanel({ session }: PanelProps): VNode {
  const data = session.simulation as SimulationData | null
  const [note, setNote] = useState('')
  const ask = async (request: SimulationRequest): Promise<void> => {
    const reply = await session.ask({ op: 'simulation', data: request })
    setNote(reply.ok ? '' : reply.error)
  }
  useEffect(() => {
    const type = (event: KeyboardEvent): void => {
      const isField = (event.composedPath()[0] as Element).matches?.('input, select')
      const found = buttons.find(([, , key]) => key === event.key)
      if (isField || event.ctrlKey || event.metaKey || event.altKey) return
      if (found !== undefined) void ask({ kind: found[0] })
      else if (event.key === 'n' && data !== null) void ask({ kind: 'seed', seed: data.seed + 1 })
    }
    document.addEventListener('keydown', type)
    return () => document.removeEventListener('keydown', type)
  }, [session, data?.seed])
  if (data === null) {
    return (
      <Empty title="No simulation runs">
        Run <code>heddle run --sim --view program.ts</code>: its virtual CPUs stop before every step.
      </Empty>
    )
  }
  const { state, seed, steps, time, cpus, tasks, runs, exitCode } = data
  const canStep = state === 'paused'
  return (
    <div class="simulation">
      <div class="bar" role="toolbar" aria-label="Steps">
        {buttons.map(([kind, label, key, title]) => (
          <button
            key={kind}
            type="button"
            title={`${title} (key ${key})`}
            disabled={kind === 'pause' ? state !== 'running' : !canStep}
            onClick={() => void ask({ kind })}
          >
            {label}
          </button>
        ))}
        <Seed seed={seed} onTake={wanted => void ask({ kind: 'seed', seed: wanted })} />
        <span class="note" role="status">
          {note !== '' ? note : stateOf(state, exitCode)}
        </span>
      </div>
      <p class="clock">
        <b>{time.toFixed(3)} ms</b> of virtual time, {steps.toLocaleString('en-US')} steps
      </p>
      <Lanes runs={runs} cpus={cpus} time={time} />
      <table class="sites simtasks">
        <caption>Tasks</caption>
        <thead>
          <tr>
            <th scope="col">task</th>
            <th scope="col">state</th>
            <th scope="col">waits for</th>
            <th scope="col">CPU</th>
            <th scope="col">priority</th>
            <th scope="col">ran</th>
            <th scope="col">waited for a CPU</th>
          </tr>
        </thead>
        <tbody>
          {tasks.map(task => (
            <tr key={task.id} class={task.state}>
              <td>{task.name}</td>
              <td>{task.state}</td>
              <td>{task.waitsFor ?? ''}</td>
              <td class="count">{task.cpu}</td>
              <td class="count">{task.priority}</td>
              <td class="count">{task.runTime.toFixed(3)} ms</td>
              <td class="count">{task.waitTime.toFixed(3)} ms</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function stateOf(state: SimulationData['state'], exitCode: number | null): string {
  if (state === 'starting') return 'The program starts. It has no kernel yet.'
  if (state === 'paused') return 'Paused. Keys: . step, s switch, l slice, r run, n next seed.'
  if (state === 'running') return 'Running. Key: p pause.'
  return `The program has ended with exit code ${exitCode}. Take a seed to start it again.`
}

function Seed({ seed, onTake }: { seed: number; onTake(seed: number): void }): VNode {
  const [text, setText] = useState(String(seed))
  useEffect(() => setText(String(seed)), [seed])
  const wanted = /^\d{1,15}$/.test(text) ? Number(text) : undefined
  return (
    <form
      class="seed"
      onSubmit={event => {
        event.preventDefault()
        if (wanted !== undefined) onTake(wanted)
      }}
    >
      <label>
        Seed{' '}
        <input
          inputMode="numeric"
          size={6}
          value={text}
          aria-invalid={wanted === undefined}
          onInput={event => setText(event.currentTarget.value)}
        />
      </label>
      <button type="submit" disabled={wanted === undefined} title="Start the program again with this seed">
        Start
      </button>
      <button
        type="button"
        title="Start the program again with the next seed (key n)"
        onClick={() => onTake(seed + 1)}
      >
        Next seed
      </button>
    </form>
  )
}
