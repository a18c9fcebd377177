/** A saved failure that runs again: its check is loaded when a page asks for another order of its steps. */
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { asRerunRequest, type CheckerData, type RerunReply, type SavedCheck } from '../report/checkview.ts'
import { parseSchedule } from '../machine/schedule.ts'
import { rerun } from '../search/rerun.ts'
import { Search } from '../search/search.ts'
import { loadChecks } from './files.ts'

export class OpenedCheck {
  private readonly saved: SavedCheck
  private search: Search | undefined
  readonly data: CheckerData

  constructor(saved: SavedCheck) {
    this.saved = saved
    const { data } = saved
    const [check] = data.checks
    const fixed = check.fixed !== '' ? check.fixed : this.changedSince()
    this.data = { ...data, checks: [{ ...check, fixed }] }
  }

  /** Answers a page that asks for another schedule. Never throws. */
  async answer(request: unknown): Promise<RerunReply> {
    try {
      const { schedule, firm } = asRerunRequest(request)
      this.search ??= await this.load()
      return rerun(this.search, parseSchedule(schedule), firm)
    } catch (error) {
      return { error: (error as Error).message }
    }
  }

  /** Why the saved execution may not be that of the files of today; empty when they are the same. */
  private changedSince(): string {
    const { path, data } = this.saved
    if (!existsSync(path)) return `${path} is not there any more, so its steps cannot run again.`
    for (const [file, text] of Object.entries(data.sources)) {
      const named = (file.startsWith('file:') ? fileURLToPath(file) : file).replace(/\?.*$/, '')
      if (!existsSync(named) || readFileSync(named, 'utf8') !== text)
        return `${named} has changed since the failure was saved, so its steps cannot run again.`
    }
    return ''
  }

  private async load(): Promise<Search> {
    const { path, id, data } = this.saved
    const { name } = data.checks[0]
    const check = (await loadChecks(path)).find(
      declared => declared.name === name && (id === undefined || declared.id === id),
    )
    if (check === undefined) throw new Error(`${path} has no check ${JSON.stringify(name)} any more`)
    if ('asyncSetup' in check)
      throw new Error('a check of asynchronous code cannot be put into another order')
    return new Search(name, check.options, check.setup)
  }
}
