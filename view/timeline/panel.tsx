import type { VNode } from 'preact'
import { Empty } from '../empty.tsx'
import type { PanelProps } from '../session.ts'

export function TimelinePanel({ session }: PanelProps): VNode {
  return <Empty title={session.about?.title ?? ''}>{session.why}</Empty>
}
