import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'

const root = join(import.meta.dirname, '..', '..')
const folder = mkdtempSync(join(tmpdir(), 'heddle-check-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

interface Ended {
  readonly out: string
  readonly err: string
  readonly code: number | null
}

/** Runs `heddle check`. `interruptOn`: sends Ctrl-C when this text is on the error stream. */
function heddleCheck(args: readonly string[], interruptOn?: string): Promise<Ended> {
  return new Promise(resolve => {
    const child = spawn(process.execPath, [join(root, 'src/cli/main.ts'), 'check', ...args], {
      cwd: root,
      env: { ...process.env, HEDDLE_CACHE: 'off' },
    })
    let out = ''
    let err = ''
    child.stdout.on('data', (text: Buffer) => void (out += text))
    child.stderr.on('data', (text: Buffer) => {
      err += text
      if (interruptOn !== undefined && err.includes(interruptOn)) child.kill('SIGINT')
    })
    child.on('close', code => resolve({ out, err, code }))
  })
}

function checkFile(name: string, text: string): string {
  const file = join(folder, name)
  writeFileSync(file, `import { check } from '${root}/src/checker/check.ts'\n${text}`)
  return file
}

const words = 'const memory = new Int32Array(new SharedArrayBuffer(8))'
const adder = `check('adders', {}, () => {
  ${words}
  const add = () => { memory[0] = memory[0] + 1 }
  const atomic = () => Atomics.add(memory, 1, 1)
  return { threads: [atomic, atomic, atomic], final: () => { if (memory[1] !== 3) throw new Error('lost') } }
})\n`
const lossy = `check('lossy', { races: false }, () => {
  ${words}
  const add = () => { memory[0] = memory[0] + 1 }
  return { threads: [add, add], final: () => { if (memory[0] !== 2) throw new Error('lost: ' + memory[0]) } }
})\n`
const endless = `check('long', { rerun: false }, () => {
  ${words}
  const add = () => { for (let i = 0; i < 12; i++) Atomics.add(memory, 0, 1) }
  return { threads: [add, add, add] }
})\n`

/** A check of two threads that execute `does` on the memory `m`, and add. */
const one = (does: string, options = '{}'): string => `check('one', ${options}, () => {
  const m = new Int32Array(new SharedArrayBuffer(4))
  const body = () => { ${does}; ${does.startsWith('bump') ? '' : 'Atomics.add(m, 0, 1)'} }
  return { threads: [body, body] }
})\n`

/** The set-up is slow, so the search for a shorter schedule takes seconds. */
const slowlyShrunk = `check('slow', { races: false, shrink: 240 }, () => {
  ${words}
  for (let turn = 0; turn < 20_000_000; turn++) if (turn < 0) throw new Error('never')
  const add = () => { for (let i = 0; i < 3; i++) memory[0] = memory[0] + 1 }
  return { threads: [add, add, add], final: () => { if (memory[0] < 9) throw new Error('lost: ' + memory[0]) } }
})\n`

const forever = "const forever = new Function('for (;;);')\n"
const stuckBody = `${forever}check('stuck body', {}, () => ({ threads: [() => forever()] }))\n`
const stuckEnd = `${forever}check('stuck end', {}, () => ({ threads: [() => 1], final: () => forever() }))\n`

describe('heddle check', () => {
  test('a correct check passes, with counts and exit code 0', async () => {
    const { out, code } = await heddleCheck([checkFile('right.check.ts', adder)])
    expect(out).toMatch(/✓ adders: 6 executions.*complete: every interleaving is covered/)
    expect(out).toContain('1 check: 1 passed, 0 failed')
    expect(code).toBe(0)
  })

  test('a failing check exits with 1, and the printed command replays the failure', async () => {
    const file = checkFile('lossy.check.ts', lossy)
    const { out, code } = await heddleCheck([file])
    expect(code).toBe(1)
    expect(out).toContain('✗ lossy: the final assertion failed: lost: 1')
    expect(out).toMatch(/read memory\[0\] → 0 +│ +│ lossy\.check\.ts:4/)
    const [, schedule] = /--replay '([^']+)'/.exec(out)!
    const again = await heddleCheck([file, '--only', 'lossy', '--replay', schedule])
    expect(again.code).toBe(1)
    expect(again.out).toContain(`schedule: ${schedule}`)
  })

  test('prints JSON, and writes a timeline', async () => {
    const timeline = join(folder, 'timeline.json')
    const { out, code } = await heddleCheck([
      checkFile('both.check.ts', adder + lossy),
      '--json',
      '--timeline',
      timeline,
    ])
    expect(code).toBe(1)
    const results = out
      .trim()
      .split('\n')
      .map(line => JSON.parse(line))
    expect(results.map(({ name, ok }) => [name, ok])).toEqual([
      ['adders', true],
      ['lossy', false],
    ])
    expect(JSON.parse(readFileSync(timeline, 'utf8')).traceEvents.length).toBeGreaterThan(4)
  })

  test('explores in parallel, and is incomplete when a bound is reached before a death was tried', async () => {
    const dying = `check('dying', { crashes: 1 }, () => {
      ${words}
      const add = () => { for (let n = 0; n < 4; n++) Atomics.add(memory, 0, 1) }
      return { threads: [add, add, add] }
    })`
    // There are as many executions without a death.
    const args = [checkFile('dying.check.ts', dying), '--parallel', '2', '--executions', '34650']
    const { out, code } = await heddleCheck(args)
    expect(out).toMatch(/◐ dying: 34,650 executions.*not complete: it was to stop after 34650 executions/)
    expect(code).toBe(3)
  })

  test('explores in parallel and counts the same', async () => {
    const { out, code } = await heddleCheck([
      checkFile('parallel.check.ts', adder + lossy),
      '--parallel',
      '2',
    ])
    expect(out).toMatch(/✓ adders: 6 executions.*complete: every interleaving is covered/)
    expect(out).toContain('✗ lossy: the final assertion failed: lost: 1')
    expect(code).toBe(1)
  })

  test('splits a long search over workers, and keeps the workers for the next check', async () => {
    const loads = join(folder, 'loads')
    const long = (name: string): string => endless.replace("'long'", `'${name}'`).replace('12', '4')
    const { out, err, code } = await heddleCheck([
      checkFile(
        'shared.check.ts',
        `import { appendFileSync } from 'node:fs'\nappendFileSync(${JSON.stringify(loads)}, 'x')\n${long('first')}${long('second')}`,
      ),
      '--parallel',
      '2',
    ])
    expect(out, err).toMatch(/✓ first: 34,650 executions.*complete: every interleaving is covered/)
    expect(out).toMatch(/✓ second: 34,650 executions.*complete: every interleaving is covered/)
    expect(code).toBe(0)
    // Once in this thread, and at most once in each worker.
    expect(readFileSync(loads, 'utf8').length).toBeLessThanOrEqual(3)
  })

  test('takes the explorer and its bounds from the command line', async () => {
    const file = checkFile('bounds.check.ts', adder)
    const pct = await heddleCheck([file, '--explorer', 'pct', '--runs', '50'])
    expect(pct.out).toMatch(/50 executions.*not complete: 50 random schedules.*probability ≥/)
    expect(pct.out).toMatch(/^◐ /m)
    expect(pct.out).toContain('1 check: 0 passed, 1 incomplete, 0 failed')
    expect(pct.code).toBe(3)
    const bounded = await heddleCheck([file, '--executions', '2'])
    expect(bounded.out).toContain('not complete: it was to stop after 2 executions')
    expect(bounded.code).toBe(3)
    expect((await heddleCheck([file, '--executions', '2', '--allow-incomplete'])).code).toBe(0)
  })

  test('respects its bounds on several workers', async () => {
    const file = checkFile('bounded.check.ts', endless)
    const executions = await heddleCheck([file, '--parallel', '2', '--executions', '5'])
    expect(executions.out).toMatch(/: 5 executions,.*it was to stop after 5 executions/)
    const runs = await heddleCheck([file, '--parallel', '2', '--explorer', 'random', '--executions', '7'])
    expect(runs.out).toMatch(/: 7 executions,/)
    const time = await heddleCheck([file, '--parallel', '2', '--time', '0'])
    expect(time.out).toMatch(/◐ .*it was to stop after 0 ms/)
    // Long enough to be split.
    const many = await heddleCheck([file, '--parallel', '2', '--executions', '40000'])
    const counts =
      /: ([\d,]+) executions(?: \(and ([\d,]+) covered by them\))?,.*it was to stop after 40000 exec/
    const [, ran = '', vain = '0'] = counts.exec(many.out) ?? []
    expect(Number(ran.replaceAll(',', '')) + Number(vain.replaceAll(',', '')), many.out).toBe(40_000)
    const longer = await heddleCheck([file, '--parallel', '2', '--time', '500'])
    expect(longer.out).toMatch(/◐ .*it was to stop after 500 ms/)
  })

  test('loads a check as a module in a package of type commonjs', async () => {
    mkdirSync(join(folder, 'commonjs'))
    writeFileSync(join(folder, 'commonjs', 'package.json'), '{ "type": "commonjs" }')
    writeFileSync(
      join(folder, 'commonjs', 'bump.ts'),
      'export const bump = (m: Int32Array) => Atomics.add(m, 0, 1)\n',
    )
    const text = `import { bump } from './bump.ts'\n${one('bump(m)')}`
    const { out, err, code } = await heddleCheck([checkFile('commonjs/first.check.ts', text)])
    expect(out, err).toMatch(/✓ one: 2 executions/)
    expect(code).toBe(0)
  })

  test('instruments a package for the check that names it, and for no other', async () => {
    const ring = join(folder, 'node_modules', 'some-ring')
    mkdirSync(ring, { recursive: true })
    writeFileSync(
      join(ring, 'package.json'),
      '{ "name": "some-ring", "type": "module", "exports": "./ring.js" }',
    )
    writeFileSync(join(ring, 'ring.js'), 'export const bump = m => Atomics.add(m, 0, 1)\n')
    const text = `import { bump } from 'some-ring'\n${one('bump(m)', "{ modules: ['some-ring'] }")}${one('bump(m)')}`
    const { out, err, code } = await heddleCheck([checkFile('named.check.ts', text)])
    expect(out).toMatch(/1 passed, 0 failed, 1 could not be run/)
    expect(err).toContain('ERR_CHECK_UNINSTRUMENTED')
    expect(code).toBe(2)
  })

  test('names the place of a timer in a thread, also when a promise swallows the error', async () => {
    const text = one('1') + one('setTimeout(() => {}, 1)') + one('new Promise(done => setTimeout(done, 1))')
    const { err, code } = await heddleCheck([checkFile('timers.check.ts', text)])
    expect(err.match(/ERR_CHECK_NONDETERMINISTIC/g)).toHaveLength(2)
    expect(err).toMatch(/setTimeout\(\) was called in \w[\w ]* at timers\.check\.ts:\d+/)
    expect(code).toBe(2)
  })

  test('reports its progress when it is interrupted', async () => {
    const { out, err, code } = await heddleCheck([checkFile('long.check.ts', endless)], 'executions')
    expect(err).toMatch(/long: [\d,]+ executions, [\d,]+\/s, depth 36, about .* % done/)
    expect(out).toMatch(/◐ long: [\d,]+ executions.*not complete: it was interrupted/)
    expect(code).toBe(130)
  })

  test('explains what is wrong with a check itself, and exits with 2', async () => {
    const throwing = checkFile('throwing.check.ts', "check('throws', {}, () => { throw new Error('no') })\n")
    const thrown = await heddleCheck([throwing])
    expect(thrown.code).toBe(2)
    expect(thrown.err).toContain('the check itself is wrong [ERR_CHECK_SETUP]')
    expect(thrown.err).toMatch(/the set-up of the check threw: no \(at throwing\.check\.ts:2:35\)/)
    const atLoad = await heddleCheck([checkFile('atload.check.ts', "throw new Error('no')")])
    expect(atLoad.err).toMatch(/atload\.check\.ts could not be loaded: no \(at atload\.check\.ts:2:7\)/)
    checkFile('enum.ts', 'export enum Color { Red }')
    const rejects = `check('rejects', () => {
      ${words}
      const add = () => { Atomics.add(memory, 0, 1) }
      return { threads: [add, add], final: () => { void (async () => { throw new Error('late') })() } }
    })\n`
    const wrong = `check('wrong', () => ({ threads: [] }))\n`
    const rejected = await heddleCheck([checkFile('rejects.check.ts', `${wrong}${rejects}${adder}`)])
    expect(rejected.err).toMatch(
      /rejects .*ERR_CHECK_PROMISE\]\n.*nothing handles it: late \(at rejects\.check/,
    )
    expect(rejected.out).toMatch(/^✓ adders: .*\n\n3 checks: 1 passed, 0 failed, 2 could not be run\n$/)
    const enumeration = await heddleCheck([checkFile('colour.check.ts', `import './enum.ts'`)])
    expect(enumeration.err).toMatch(
      /colour\.check\.ts could not be loaded: .*enum.*\(at \S*\/enum\.ts:2\); Node only/,
    )
    const broken = await heddleCheck([checkFile('broken.check.ts', 'check(\n')])
    expect(broken.code).toBe(2)
    expect(broken.err).toMatch(/broken\.check\.ts could not be loaded/)
    const empty = checkFile('empty.check.ts', '')
    const beside = await heddleCheck([checkFile('beside.check.ts', adder), empty])
    for (const { err, code } of [await heddleCheck([empty]), beside]) {
      expect(err).toMatch(/✗ \S*empty\.check\.ts: the file declares no checks/)
      expect(code).toBe(2)
    }
    expect(beside.out).toMatch(/✓ adders/)
    const importer = checkFile('importer.check.ts', `import './imported.check.ts'\n`)
    const imported = checkFile('imported.check.ts', adder)
    expect((await heddleCheck([importer, imported])).code).toBe(0)
    expect((await heddleCheck([join(folder, 'nowhere')])).err).toContain('no such file or folder')
  })

  test('has no exit code of a check that ends the process, or whose file never ends', async () => {
    const atomic = `const b = () => { Atomics.add(m, 0, 1)`
    const setup = (body: string, rest = ''): string =>
      `check('ends', () => { const m = new Int32Array(new SharedArrayBuffer(4)); ${atomic}; ${body} }; return { threads: [b, b], ${rest} } })`
    for (const [name, text] of [
      ['thread', setup('process.exit(0)')],
      ['final', setup('', 'final: () => process.exit(0)')],
      ['set-up', `check('ends', () => process.exit(0))`],
      ['module', `${lossy}\nprocess.exit(0)`],
      ['never', `${lossy}\nawait new Promise(() => {})`],
    ] as const) {
      const { err, code } = await heddleCheck([checkFile(`${name}.check.ts`, text)])
      expect(err, name).toMatch(/\.check\.ts.*: the process ended there/)
      expect(code, name).toBe(2)
    }
    const listener = `${lossy}\nprocess.on('exit', () => { process.exitCode = 0 })`
    expect((await heddleCheck([checkFile('listener.check.ts', listener)])).code).toBe(1)
  })

  test('instruments the relative imports of a check', async () => {
    writeFileSync(
      join(folder, 'counter.ts'),
      'export const bump = (m: Int32Array): void => { m[0] = m[0] + 1 }\n',
    )
    const text = `import { bump } from './counter.ts'\n${lossy.replace('memory[0] = memory[0] + 1', 'bump(memory)')}`
    const { out } = await heddleCheck([checkFile('importing.check.ts', text)])
    expect(out).toMatch(/read m\[0\] → 0 +│ +│ counter\.ts:1/)
  })

  test('passes every check of this repository, in a bounded form', async () => {
    const { out, err, code } = await heddleCheck([
      'src',
      '--executions',
      '20',
      '--time',
      '200',
      '--json',
      '--allow-incomplete',
    ])
    const results = out
      .trim()
      .split('\n')
      .map(line => JSON.parse(line) as { name: string; ok: boolean; failure: unknown })
    expect(
      results.filter(({ ok }) => !ok),
      err,
    ).toEqual([])
    expect(results.length).toBeGreaterThan(15)
    expect(code).toBe(0)
  })

  test('counts a slow search for a shorter schedule as progress', async () => {
    const { out, err, code } = await heddleCheck([
      checkFile('slow.check.ts', slowlyShrunk),
      '--patience',
      '1',
    ])
    expect(err).not.toContain('no progress for')
    expect(out).toContain('lost: ')
    expect(code).toBe(1)
  })

  test.each([
    ['stuck body', stuckBody],
    ['stuck end', stuckEnd],
  ])('names a check whose own code never comes back, and ends: %s', async (name, text) => {
    const started = await heddleCheck([checkFile('stuck.check.ts', adder + text), '--patience', '1'])
    expect(started.out).toContain('✓ adders')
    expect(started.err).toMatch(new RegExp(`✗ .*stuck.check.ts ${name}: no progress for 1 s`))
    expect(started.code, 'only a kill ends such a thread').toBe(null)
  })
})
