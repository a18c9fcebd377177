import type { VNode } from 'preact'
import type { SimulatedCpuState, SimulatedRun } from '../../src/view/simulation.ts'

/** The part of the past that is shown, in stretches. */
const SHOWN = 80

/** A lane a CPU, over the last stretches of virtual time. */
export function Lanes({
  runs,
  cpus,
  time,
}: {
  readonly runs: readonly SimulatedRun[]
  readonly cpus: readonly SimulatedCpuState[]
  readonly time: number
}): VNode {
  const shown = runs.slice(-SHOWN)
  const begin = shown[0]?.from ?? 0
  const span = Math.max(time - begin, 1e-6)
  const percent = (at: number): string => `${((100 * (at - begin)) / span).toFixed(3)}%`
  return (
    <div class="simlanes">
      {cpus.map(({ cpu, running, queued, switches }) => (
        <div key={cpu} class="simlane">
          <span class="name">
            CPU {cpu}
            <small>
              {queued} queued, {switches} switches
            </small>
          </span>
          <div class="track" role="img" aria-label={`CPU ${cpu} runs ${running ?? 'nothing'}`}>
            {shown
              .filter(run => run.cpu === cpu)
              .map((run, n) => (
                <span
                  key={n}
                  class={`run t${run.task % 8} ${run.to === null ? 'open' : ''}`}
                  style={{
                    left: percent(run.from),
                    width: `calc(${percent((run.to ?? time) - run.from + begin)} - 1px)`,
                  }}
                  title={`${run.name}: ${run.from.toFixed(3)} to ${run.to?.toFixed(3) ?? 'now'} ms`}
                >
                  {run.name}
                </span>
              ))}
          </div>
          <span class={`now ${running === null ? 'idle' : ''}`}>{running ?? 'idle'}</span>
        </div>
      ))}
      <p class="axis simaxis">
        <span>{begin.toFixed(3)} ms</span>
        <span>{time.toFixed(3)} ms</span>
      </p>
    </div>
  )
}
