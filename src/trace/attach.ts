import { onBoot } from '../kernel/boot/hooks.ts'
import { isNode } from '../kernel/boot/machines.ts'
import { publishDiagnostics } from './diagnostics.ts'
import { markFrom } from './mark.ts'

onBoot((view, { events }) => {
  publishDiagnostics(events)
  return markFrom(view.s)
})

/**
 * Makes every kernel on Node observable from outside (`heddle top`), unless it was booted with `control:
 * false`.
 */
onBoot((view, { control }) => {
  if (!control || !isNode()) return undefined
  let stop: (() => void) | undefined
  let closed = false
  void import('./node-control.ts').then(({ listenForControl }) => {
    if (!closed) stop = listenForControl(view)
  })
  return () => {
    closed = true
    stop?.()
  }
})
