import { pending } from '../machine/pending.ts'

/** A place in the source, and how many executions begin to differ there from the one before. */
export interface BranchSite {
  readonly file: string
  readonly line: number
  readonly text: string
  readonly branches: number
}

/** The shape of a search so far, as plain data. */
export interface ExploredShape {
  /** Entry n: the number of executions with n steps. */
  readonly lengths: readonly number[]
  /** Entry n: the number of executions that begin to differ from the one before at step n. */
  readonly branches: readonly number[]
  /** The places with the most branches, most first. */
  readonly sites: readonly BranchSite[]
}

const SITES_MAX = 12
/** Longer executions are counted with the longest: the counts stay small. */
const DEPTH_MAX = 4096

/** Counts, for each execution of a search, its length and where it branched off. */
export class Explored {
  private lengths = new Int32Array(64)
  private branches = new Int32Array(64)
  private sites = new Int32Array(64)

  /** An execution of `length` events has ended. Its first `common` events are those of the one before. */
  note(length: number, common: number, site: number): void {
    const depth = Math.min(length, DEPTH_MAX)
    if (depth >= this.lengths.length) this.lengths = longer(this.lengths, depth)
    if (depth >= this.branches.length) this.branches = longer(this.branches, depth)
    this.lengths[depth]++
    this.branches[Math.min(common, depth)]++
    if (site < 0) return
    if (site >= this.sites.length) this.sites = longer(this.sites, site)
    this.sites[site]++
  }

  clear(): void {
    for (const counts of [this.lengths, this.branches, this.sites]) counts.fill(0)
  }

  get shape(): ExploredShape {
    const sites = Array.from(this.sites, (branches, site) => ({ site, branches }))
      .filter(({ branches }) => branches > 0)
      .sort((a, b) => b.branches - a.branches)
      .slice(0, SITES_MAX)
    return {
      lengths: trimmed(this.lengths),
      branches: trimmed(this.branches),
      sites: sites.map(({ site, branches }) => ({
        file: pending.files[pending.siteFile[site]] ?? '',
        line: pending.siteLine[site] ?? 0,
        text: pending.siteText[site] ?? '',
        branches,
      })),
    }
  }
}

function longer(counts: Int32Array<ArrayBuffer>, least: number): Int32Array<ArrayBuffer> {
  const bigger = new Int32Array(Math.max(2 * counts.length, least + 1))
  bigger.set(counts)
  return bigger
}

function trimmed(counts: Int32Array): number[] {
  let end = counts.length
  while (end > 0 && counts[end - 1] === 0) end--
  return Array.from(counts.subarray(0, end))
}
