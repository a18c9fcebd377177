/**
 * The package as a program gets it: built, packed and unpacked once into a scratch folder, on which the rows
 * of boot and import are measured. Development sources are one file a module, and have their types stripped.
 */
import { execFileSync, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { packTarball } from '../../scripts/matrix.ts'

const root = join(import.meta.dirname, '..', '..')

/** What a process with the installed package measures; milliseconds. */
export interface StartFigures {
  /** `import 'heddle'`, the first in its process. */
  readonly importPackage: number
  /** As many bare workers as CPUs, until all are online. */
  readonly bare: number
  /** `Kernel.boot`. */
  readonly boot: number
  /** `kernel.import` of a module with a 'use task' function, on all CPUs of a new kernel. */
  readonly importModule: number
}

export class PackedHeddle {
  private readonly folder: string = mkdtempSync(join(tmpdir(), 'heddle-bench-'))

  constructor() {
    const modules = join(this.folder, 'node_modules')
    mkdirSync(join(modules, 'heddle'), { recursive: true })
    const tarball = packTarball(this.folder)
    execFileSync('tar', ['-xzf', tarball, '-C', join(modules, 'heddle'), '--strip-components', '1'])
    const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      dependencies: Record<string, string>
    }
    for (const name of Object.keys(dependencies)) {
      mkdirSync(dirname(join(modules, name)), { recursive: true })
      symlinkSync(join(root, 'node_modules', name), join(modules, name))
    }
    for (const name of ['start.mjs', 'startwork.mjs']) {
      writeFileSync(join(this.folder, name), readFileSync(join(import.meta.dirname, name)))
    }
  }

  /** Measures once, in a new process. The caches on disk are those of the earlier ones. */
  async start(cpus: number): Promise<StartFigures> {
    const child = fork(join(this.folder, 'start.mjs'), [String(cpus)], { execArgv: [] })
    const [[figures]] = await Promise.all([once(child, 'message'), once(child, 'exit')])
    return figures as StartFigures
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}
