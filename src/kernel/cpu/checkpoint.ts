import { JobImages } from '../spawn/job.ts'
import type { KernelView } from '../boot/view.ts'

/**
 * The last checkpoint of a job: its task goes on from there when its CPU dies. A job has two slots, so that a
 * CPU that dies while it writes leaves the checkpoint before:
 *
 *   CPU of the task                              recovering thread
 *   ---------------                              -----------------
 *   (A) puts the new image into the free slot
 *                                                the slot that (B) named before: whole
 *   (B) stores which slot is the last one
 *                                                the new one: whole
 *   (C) frees the image of the other slot
 *
 * One thread writes at a time: the CPU that runs the task, and after its death the recovering thread. A task
 * that goes on from a checkpoint keeps it: its next CPU may die too.
 */
export function storeCheckpoint(view: KernelView, job: number, image: number): void {
  const { i32, codec } = view
  const images = view.openImages(job)
  const last = i32[images + JobImages.checkpoint]
  const slot = last === 1 ? 1 : 0
  // A CPU that died between (B) and (C) has left an older one.
  codec.drop(images + JobImages.checkpoints + slot)
  codec.put(images + JobImages.checkpoints + slot, image) // (A)
  view.f64[(images + JobImages.checkpointAt) >> 1] = view.s.clock
  Atomics.store(i32, images + JobImages.checkpoint, slot + 1) // (B)
  codec.drop(images + JobImages.checkpoints + (1 - slot)) // (C)
}

/** The image of the last checkpoint; 0: there is none. */
export function lastCheckpoint(view: KernelView, job: number): number {
  const { i32 } = view
  const images = view.imagesOf(job)
  const slot = Atomics.load(i32, images + JobImages.checkpoint)
  return slot === 0 ? 0 : Atomics.load(i32, images + JobImages.checkpoints + slot - 1)
}
