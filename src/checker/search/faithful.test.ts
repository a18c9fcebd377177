import { readFileSync } from 'node:fs'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type Log,
  type Outcome,
  type Program,
  runPlain,
  show,
} from '../../../test/compiler/differential/drive.ts'
import { compile } from '../../compiler/compile.ts'
import {
  evaluateModule,
  evaluateScript,
  type Namespace,
} from '../../../test/compiler/differential/evaluate.ts'
import { plain, programFiles, readProgram } from '../../../test/compiler/differential/programs.ts'
import { programFrom } from '../../../test/compiler/differential/random.ts'
import { twin } from '../../coroutine/core/coroutine.ts'
import {
  DATAVIEW_READ,
  DATAVIEW_WRITE,
  KIND_NAMES,
  PAUSE,
  PLAIN_READ,
  PLAIN_WRITE,
} from '../machine/operations.ts'
import * as runtime from '../instrument/runtime.ts'

const { pending } = runtime

const atomics: ((...args: any[]) => unknown)[] = KIND_NAMES.map(name => (Atomics as any)[name])

/** Performs the operation of the running thread immediately: a single thread has no interleavings. */
function perform(): unknown {
  const kind = pending.kind[0]!
  const view = pending.view[0] as any
  const index = pending.index[0] as any
  const a = pending.a[0] as any
  const b = pending.b[0] as any
  switch (kind) {
    case PLAIN_READ:
      return view[index]
    case PLAIN_WRITE:
      return (view[index] = a)
    case DATAVIEW_READ:
      return view[b[0]](index, b[1])
    case DATAVIEW_WRITE:
      return view[b[0]](index, a, b[1])
    case PAUSE:
      return undefined
    default:
      return kind === 10 ? atomics[kind]!(view, index, a, b) : atomics[kind]!(view, index, a)
  }
}

/** Runs a checked program as the only virtual thread, and counts its operations. */
function runChecked(program: Program): Outcome & { operations: number } {
  const lines: string[] = []
  const log: Log = (...values) => {
    lines.push(values.map(show).join(' '))
    return values.at(-1)
  }
  let operations = 0
  const resumable = (program as any)[twin] as (log: Log) => Generator<number, unknown, unknown>
  pending.current = 0
  try {
    const thread = resumable(log)
    let step = thread.next()
    while (!step.done) {
      operations++
      let sent: unknown
      try {
        sent = perform()
      } catch (error) {
        step = thread.throw(error)
        continue
      }
      step = thread.next(sent)
    }
    return { ended: 'returned', value: show(step.value), log: lines, operations }
  } catch (error) {
    return { ended: 'threw', value: show(error), log: lines, operations }
  } finally {
    pending.current = -1
  }
}

const written = new Map<string, string>()

/** A fresh instance of the module as checked code. */
function checked(source: string, file: string): Namespace {
  let code = written.get(source)
  if (code === undefined) {
    const output = compile(source, file, { mode: 'checker', sourcemap: false, mark: 'heddle_faithfully' })
    const error = output.diagnostics.find(({ severity }) => severity === 'error')
    if (error !== undefined) throw new SyntaxError(`${error.message}\n${error.frame}`)
    code = output.code
    written.set(source, code)
  }
  const modules = { 'heddle/checker/runtime': runtime }
  return file.endsWith('.cjs') ? evaluateScript(code, file, modules) : evaluateModule(code, file, modules)
}

/**
 * Checked code runs an async function as part of its caller, so programs with one are left to the explorer.
 */
function synchronous(namespace: Namespace): string[] {
  return Object.keys(namespace).filter(
    name => typeof namespace[name] === 'function' && namespace[name].constructor.name !== 'AsyncFunction',
  )
}

for (const file of programFiles()) {
  const source = readProgram(file)
  const names = file === 'asynchronous.js' ? [] : synchronous(plain(source, file))
  if (names.length === 0) continue
  describe(`${file.replace(/\.\w+$/, '').replaceAll('-', ' ')}, run as written and as checked code`, () => {
    for (const name of names) {
      test(
        name.replace(/[A-Z]/g, letter => ` ${letter.toLowerCase()}`),
        async () => {
          const expected = await runPlain(plain(source, file)[name] as Program)
          const { operations, ...outcome } = runChecked(checked(source, file)[name] as Program)
          expect(outcome).toEqual(expected)
          expect(operations).toBe(0)
        },
      )
    }
  })
}

describe('programs on shared memory, run as written and as checked code', () => {
  const source = readFileSync(new URL('../../../testing/checker/fixtures/shared.js', import.meta.url), 'utf8')
  const more = new Map([
    ['destructuring', 6],
    ['takenApartInParameters', 7],
    ['takenApartInHeads', 8],
  ])
  for (const name of Object.keys(plain(source, 'shared.js'))) {
    test(
      name.replace(/[A-Z]/g, letter => ` ${letter.toLowerCase()}`),
      async () => {
        const expected = await runPlain(plain(source, 'shared.js')[name] as Program)
        const { operations, ...outcome } = runChecked(checked(source, 'shared.js')[name] as Program)
        expect(outcome).toEqual(expected)
        if (name === 'notShared') expect(operations).toBe(0)
        else expect(operations).toBeGreaterThan(more.get(name) ?? 3)
      },
    )
  }
})

test('random programs do the same as checked code', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(0xffff), { minLength: 20, maxLength: 180, size: 'max' }), async tape => {
      const source = programFrom(tape)
      const expected = await runPlain(plain(source, 'random.cjs')['main'] as Program)
      const { operations: _, ...outcome } = runChecked(checked(source, 'random.cjs')['main'] as Program)
      expect(outcome, source).toEqual(expected)
    }),
    { numRuns: 300 },
  )
})
