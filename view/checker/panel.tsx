import type { VNode } from 'preact'
import { Empty } from '../empty.tsx'
import type { PanelProps } from '../session.ts'

export function CheckerPanel({ session }: PanelProps): VNode {
  if (session.checker === null) {
    return (
      <Empty title="No check is open">
        Run <code>heddle check --view ring.check.ts</code>: a failing execution is shown here, step by step.
      </Empty>
    )
  }
  return <pre>{JSON.stringify(session.checker, null, 2)}</pre>
}
