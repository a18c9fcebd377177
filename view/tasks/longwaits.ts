import { stateNames } from '../model/lane.ts'
import type { LongWait } from '../model/trace.ts'
import type { Session } from '../session.ts'
import { chartOf } from '../timeline/panel.tsx'

export function waitText({ state, args }: LongWait): string {
  const holder = args?.['waits for']
  const on = args?.on === undefined ? '' : ` ${args.on}`
  return `${stateNames[state]}${on}${holder === undefined ? '' : `, held by ${holder}`}`
}

/** Shows a wait in the time line, with its task chosen. */
export function showWait(session: Session, { lane, number }: LongWait): void {
  const chart = chartOf(session)
  const slice = lane.numbered(number)
  if (slice === null) return
  if (!chart.shownTasks().includes(lane)) chart.toggle(lane.track.id)
  chart.reveal(slice)
  session.show('timeline')
}
