import { isRecording, OVERWRITE_OLDEST, startRecording, stopRecording } from '../arena/rings/eventring.ts'
import type { KernelView } from '../kernel/boot/view.ts'

/**
 * Viewers share one recording: the first one begins it, unless the kernel records already. The last one ends
 * it, unless a `Recording` or a `FlightRecorder` has taken it over. All of this is on the booting thread.
 */
interface Sharing {
  viewers: number
  /** A viewer began the recording, so the last viewer ends it. */
  isOurs: boolean
}

const sharings = new WeakMap<KernelView, Sharing>()

/** Returns the function that leaves. */
export function shareRecording(view: KernelView): () => void {
  const { events } = view.plan.scheduler
  if (events === null) return () => undefined
  const sharing = sharings.get(view) ?? { viewers: 0, isOurs: false }
  sharings.set(view, sharing)
  sharing.viewers++
  if (!isRecording(view.i32, events)) {
    startRecording(view.i32, events, OVERWRITE_OLDEST)
    sharing.isOurs = true
  }
  let isIn = true
  return () => {
    if (!isIn) return
    isIn = false
    if (--sharing.viewers === 0 && sharing.isOurs) {
      sharing.isOurs = false
      stopRecording(view.i32, events)
    }
  }
}

/** Whether only viewers record: then another recorder may begin again. */
export function onlyViewersRecord(view: KernelView): boolean {
  return sharings.get(view)?.isOurs === true
}

/** A recorder has begun its own recording: no viewer ends it. */
export function takeOverRecording(view: KernelView): void {
  const sharing = sharings.get(view)
  if (sharing !== undefined) sharing.isOurs = false
}

/** A recorder has ended its recording: it begins again for the viewers that are left. */
export function leaveToViewers(view: KernelView): void {
  const sharing = sharings.get(view)
  const { events } = view.plan.scheduler
  if (sharing === undefined || sharing.viewers === 0 || events === null) return
  startRecording(view.i32, events, OVERWRITE_OLDEST)
  sharing.isOurs = true
}
