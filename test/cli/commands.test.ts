import { type SpawnSyncReturns, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { readPerfetto } from '../../src/trace/perfetto.ts'
import { Summary } from '../../src/trace/summary.ts'

const main = new URL('../../src/cli/main.ts', import.meta.url).pathname
const program = (name: string): string => new URL(`./programs/${name}.ts`, import.meta.url).pathname
const folder = mkdtempSync(join(tmpdir(), 'heddle-cli-'))
afterAll(() => rmSync(folder, { recursive: true }))

function heddle(...args: string[]): SpawnSyncReturns<string> {
  return spawnSync(process.execPath, [main, ...args], {
    encoding: 'utf8',
    env: { ...process.env, NO_COLOR: '1' },
  })
}

function summaryOf(file: string): Summary {
  const summary = new Summary()
  readPerfetto(readFileSync(file), summary)
  return summary
}

describe('heddle', () => {
  it('lists its commands, and prints help for each', () => {
    const { stdout, status } = heddle('--help')
    expect(status).toBe(0)
    // The placeholders of arguments are words for a user.
    expect(new Set(stdout.match(/<[^>]+>|\[[^\]]+\]/g))).toEqual(
      new Set(['[options]', '[command]', '<file>', '[args...]', '[paths...]', '[pid]', '[what]', '[shell]']),
    )
    const commands = [...stdout.matchAll(/^ {2}([a-z]+)/gm)]
      .map(([, name]) => name)
      .filter(name => name !== 'help')
    expect(commands).toEqual(
      expect.arrayContaining(['run', 'top', 'check', 'compile', 'trace', 'completion', 'selftest']),
    )
    for (const command of commands) {
      const help = heddle(command, '--help')
      expect(help.status, command).toBe(0)
      expect(help.stdout, command).toContain(`Usage: heddle ${command}`)
    }
    for (const command of ['convert', 'summarise'])
      expect(heddle('trace', command, '--help').stdout).toContain(`Usage: heddle trace ${command}`)
  })

  it('prints an error in one line, with a hint, and exits with 2 or 1', () => {
    const cases: [string[], number, RegExp][] = [
      [['run', 'nothing.ts'], 2, /^heddle run: no file nothing\.ts \(the path is relative to .*\)\n$/],
      [['run', folder], 2, /^heddle run: .* is a folder \(name one file in it\)\n$/],
      [
        ['run', '--seed', '3', program('busy')],
        2,
        /^heddle run: --seed is for simulated CPUs \(add --sim\)\n$/,
      ],
      [
        ['run', '--trace', join(folder, 'none', 'x.pftrace'), program('busy')],
        1,
        /^heddle run: .*x\.pftrace: its folder does not exist \(check the path\)\n$/,
      ],
      [
        ['run', '--trace', folder, program('busy')],
        1,
        /^heddle run: .* is a folder \(name one file in it\)\n$/,
      ],
      [['run'], 2, /^error: missing required argument 'file'\n\(heddle run --help shows its arguments\)\n$/],
      [['runs', 'show'], 2, /^error: .*'id'\n\(heddle runs show --help shows its arguments\)\n$/],
      [
        ['top', '--frobnicate'],
        2,
        /^error: unknown option '--frobnicate'\n\(heddle top --help shows its arguments\)\n$/,
      ],
      [['nonsense'], 2, /^error: .*'nonsense'\n\(heddle --help lists the commands\)\n$/],
      [['run', '--policy', './none.ts', program('busy')], 2, /^heddle run: .*none\.ts/],
      [
        ['trace', 'summarise', 'nothing.pftrace'],
        2,
        /^heddle trace summarise: no file nothing\.pftrace \(.*\)\n$/,
      ],
      [
        ['trace', 'convert', main],
        1,
        /^heddle trace convert: .* is not a trace.*\(name a file that heddle run --trace wrote\)\n$/,
      ],
      [['compile', folder], 2, /^heddle compile: .* is a folder \(name one file in it\)\n$/],
      [['compile'], 2, /^error: missing required argument 'file'\n/],
      [['check', '--nothing'], 2, /^error: unknown option '--nothing'\n/],
      [['nothing'], 2, /^error: unknown command 'nothing'\n/],
      [['top', 'me'], 2, /^heddle top: me is no process id \(give a number, .*\)\n$/],
      [['top', '999999'], 1, /^heddle top: process 999999 runs no heddle kernel \(.*\)\n$/],
    ]
    for (const [args, status, line] of cases) {
      const ran = heddle(...args)
      expect(ran.stderr, args.join(' ')).toMatch(line)
      expect(ran.status, args.join(' ')).toBe(status)
      expect(ran.stdout).toBe('')
    }
    expect(heddle('run', '--cpus', 'many', program('busy')).stderr).toContain('give a whole number')
    expect(heddle('dance').stderr).toContain("unknown command 'dance'")
  })

  it('prints JSON in every command', () => {
    interface Listed {
      readonly name: string
      readonly options: readonly { readonly flags: string }[]
      readonly commands: readonly Listed[]
    }
    const without = ({ name, options, commands }: Listed): string[] => {
      if (commands.length > 0) return commands.flatMap(one => without(one).map(below => `${name} ${below}`))
      return options.some(({ flags }) => flags === '--json') ? [] : [name]
    }
    const { stdout, status } = heddle('completion', '--json')
    expect(status).toBe(0)
    expect(without(JSON.parse(stdout))).toEqual([])
    const missing = heddle('completion')
    expect(missing.status).toBe(2)
    expect(missing.stderr).toBe('heddle completion: no shell is named (give bash, zsh or fish, or --json)\n')
  })

  it('prints an error as JSON with --json', () => {
    for (const [args, wrong] of [
      [['run', '--json', 'nothing.ts'], { command: 'run', error: 'no file nothing.ts', exitCode: 2 }],
      [['run', '--json', '--top', program('busy')], { command: 'run', exitCode: 2 }],
      [['top', '--json', '999999'], { command: 'top', exitCode: 1 }],
      [['trace', 'summarise', '--json', 'nix'], { command: 'trace summarise', error: 'no file nix' }],
      [['trace', 'convert', '--json', 'nix'], { command: 'trace convert', exitCode: 2 }],
      [['compile', '--json', 'nix.ts'], { command: 'compile', error: 'no file nix.ts', exitCode: 2 }],
    ] as const) {
      const ran = heddle(...args)
      const said = JSON.parse(ran.stderr)
      expect(said, args.join(' ')).toMatchObject(wrong)
      expect(said.hint, args.join(' ')).toEqual(expect.any(String))
      expect(ran.status, args.join(' ')).toBe(said.exitCode)
      expect(ran.stdout).toBe('')
    }
  })

  it('runs its self-test, as text and as JSON', () => {
    const { stdout, status } = heddle('selftest', '--json')
    expect(status).toBe(0)
    const { ok, checks } = JSON.parse(stdout)
    expect(ok).toBe(true)
    expect(checks.length).toBeGreaterThan(5)
    expect(checks.every((check: { ok: boolean }) => check.ok)).toBe(true)
  })

  it('completes in bash', () => {
    const { stdout } = heddle('completion', 'bash')
    const complete = (line: string): string => {
      const script = `${stdout}\nCOMP_WORDS=(${line}); COMP_CWORD=$((\${#COMP_WORDS[@]}-1)); _heddle; echo "\${COMPREPLY[@]}"`
      return spawnSync('bash', ['-c', script], { encoding: 'utf8' }).stdout.trim()
    }
    expect(complete('heddle tr')).toBe('trace')
    expect(complete('heddle trace con')).toBe('convert')
    expect(complete('heddle run --se')).toBe('--seed')
    for (const shell of ['zsh', 'fish']) expect(heddle('completion', shell).stdout).toContain('summarise')
  })
})

describe('heddle run', () => {
  it('runs a program, and passes on its arguments and its exit code', () => {
    const ran = heddle('run', '--cpus', '1', program('busy'), '20')
    expect(ran.stderr).toBe('')
    expect(ran.stdout).toBe('booted\nfulfilled fulfilled fulfilled\n')
    expect(ran.status).toBe(0)
    for (const dashes of [[], ['--']]) {
      const { stdout } = heddle('run', program('arguments'), ...dashes, '--help', '--', 'x')
      expect(JSON.parse(stdout)).toEqual(['--help', '--', 'x'])
    }
    const threw = heddle('run', program('throws'))
    expect(threw.status).toBe(1)
    expect(threw.stderr).toContain('thrown on purpose')
    expect(threw.stderr).toContain('programs/throws.ts:4')
  })

  it('runs on simulated CPUs: the same seed gives the same bytes, another seed other bytes', () => {
    const [first, again, other] = ['7', '7', '8'].map(seed =>
      heddle('run', '--sim', '--seed', seed, program('simulated'), 'an argument'),
    )
    expect(first.stderr).toBe('')
    expect(first.stdout).toContain('2000-01-01T00:00:0')
    expect(first.stdout).toContain('an argument')
    expect(again.stdout).toBe(first.stdout)
    expect(other.stdout).not.toBe(first.stdout)
  })

  it('records a trace that can be converted and summarised', () => {
    const file = join(folder, 'out.pftrace')
    expect(heddle('run', '--trace', file, program('busy'), '30').status).toBe(0)
    expect(summaryOf(file).tasks.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['spinner A', 'spinner B', 'sleeper']),
    )
    const summary = heddle('trace', 'summarise', file)
    expect(summary.stdout).toMatch(/^spinner A +[\d.]+ ms/m)
    expect(summary.stdout).toContain('Longest inversions')
    expect(JSON.parse(heddle('trace', 'summarise', '--json', file).stdout)).toMatchObject({ lostEvents: 0 })
    const json = join(folder, 'out.json')
    expect(heddle('trace', 'convert', file, json).status).toBe(0)
    expect(JSON.parse(readFileSync(json, 'utf8')).length).toBeGreaterThan(10)
    expect(heddle('trace', 'convert', file).stdout).toBe(readFileSync(json, 'utf8'))
  })

  it('reports the run as JSON, apart from the output of the program', () => {
    const file = join(folder, 'reported.pftrace')
    const ran = heddle('run', '--json', '--policy', 'fifo', '--trace', file, program('busy'), '20')
    expect(ran.stdout).toBe('booted\nfulfilled fulfilled fulfilled\n')
    expect(JSON.parse(ran.stderr)).toEqual({
      file: program('busy'),
      exitCode: 0,
      ms: expect.any(Number),
      policies: [expect.objectContaining({ policy: 'fifo', acquisitions: 0 })],
      traces: [{ trace: file, lostEvents: 0 }],
    })
    const output = join(folder, 'reported.json')
    const said = JSON.parse(heddle('trace', 'convert', '--json', file, output).stdout)
    expect(said).toMatchObject({ file, output, format: 'chrome', lostEvents: 0 })
    expect(said.bytes).toBe(readFileSync(output).length)
    const threw = heddle('run', '--json', program('throws'))
    expect(threw.status).toBe(1)
    expect(JSON.parse(threw.stderr.trim().split('\n').at(-1)!)).toMatchObject({ exitCode: 1 })
    const simulated = ['1', '2'].map(() => heddle('run', '--json', '--sim', program('simulated'), 'x').stderr)
    expect(JSON.parse(simulated[0])).toMatchObject({ exitCode: 0 })
    expect(simulated[1]).toBe(simulated[0])
  })

  it('leaves a complete trace when it is interrupted', async () => {
    const file = join(folder, 'cut.pftrace')
    const child = spawn(process.execPath, [main, 'run', '--trace', file, program('busy')], {
      stdio: 'pipe',
      detached: true,
    })
    await once(child.stdout, 'data')
    await new Promise(resolve => setTimeout(resolve, 200))
    // To the whole process group, as Ctrl-C does.
    process.kill(-child.pid!, 'SIGINT')
    const [code] = await once(child, 'exit')
    expect(code).toBe(130)
    expect(summaryOf(file).tasks.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['spinner A', 'sleeper']),
    )
  })
})
