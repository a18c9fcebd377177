import type { Slab } from '../../arena/memory/slab.ts'
import { ENTITY_AT } from './taskrecord.ts'

/** The entities of all tasks, for scans: each is in the slot of its task. */
export class Entities {
  private readonly tasks: Slab

  constructor(tasks: Slab) {
    this.tasks = tasks
  }

  /** As `Slab.after`. */
  after(i32: Int32Array, se: number): number {
    const task = this.tasks.after(i32, se === 0 ? 0 : se - ENTITY_AT)
    return task === 0 ? 0 : task + ENTITY_AT
  }

  isPublished(i32: Int32Array, se: number): boolean {
    return this.tasks.isPublished(i32, se - ENTITY_AT)
  }

  indexOf(se: number): number {
    return this.tasks.indexOf(se - ENTITY_AT)
  }

  pointerAt(index: number): number {
    return this.tasks.pointerAt(index) + ENTITY_AT
  }
}
