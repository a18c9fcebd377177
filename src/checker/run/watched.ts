import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { CheckList } from '../report/checklist.ts'
import type { SavedCheck } from '../report/checkview.ts'

/** The checks of `heddle check`, for a page or a file. */
export class WatchedChecks extends CheckList {
  constructor() {
    super(readSource)
  }

  /** Writes the first failing execution to a file that `heddle view` opens. False when no check failed. */
  save(path: string): boolean {
    const failed = this.entries.find(({ view }) => view.execution !== undefined)
    if (failed === undefined) return false
    const saved: SavedCheck = {
      format: 'heddle check',
      version: 1,
      path: failed.file,
      id: failed.id,
      data: { checks: [failed.view], over: true, sources: this.sources },
    }
    writeFileSync(path, JSON.stringify(saved))
    return true
  }
}

function readSource(file: string): string | undefined {
  try {
    const path = file.startsWith('file:') ? fileURLToPath(file) : file
    return readFileSync(path.replace(/\?.*$/, ''), 'utf8')
  } catch {
    return undefined
  }
}
