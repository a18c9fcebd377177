import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { lineOf, type Step } from './script.ts'

/** The compiled C program that calls the kernel; undefined without Linux or a C compiler. */
export function buildLinuxFutex(source = 'linux.c'): string | undefined {
  if (process.platform !== 'linux') return undefined
  const program = join(mkdtempSync(join(tmpdir(), 'heddle-futex-')), 'futex')
  try {
    execFileSync('cc', ['-O1', '-pthread', '-o', program, join(import.meta.dirname, source)], {
      stdio: 'pipe',
    })
    return program
  } catch {
    return undefined
  }
}

/** The kernel's answer to each step. */
export function runOnLinux(program: string, script: readonly Step[]): string[] {
  return askLinux(program, script.map(lineOf))
}

/** The answer of a C program to each line. */
export function askLinux(program: string, lines: readonly string[]): string[] {
  const { stdout, status, stderr } = spawnSync(program, {
    input: `${lines.join('\n')}\n`,
    encoding: 'utf8',
    timeout: 60_000,
  })
  if (status !== 0) throw new Error(`the C program failed: ${stderr}`)
  return stdout.trim().split('\n')
}
