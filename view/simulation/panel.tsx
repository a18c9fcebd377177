import type { VNode } from 'preact'
import { Empty } from '../empty.tsx'
import type { PanelProps } from '../session.ts'

export function SimulationPanel({ session }: PanelProps): VNode {
  if (session.simulation === null) {
    return (
      <Empty title="No simulated run">
        Run <code>heddle run --sim --view program.ts</code>: its virtual CPUs are stepped from here.
      </Empty>
    )
  }
  return <pre>{JSON.stringify(session.simulation, null, 2)}</pre>
}
