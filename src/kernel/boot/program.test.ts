import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

/** Whole programs, each in its own process: their output and their exit. */
interface Ended {
  /** The exit code, or the signal that ended it. */
  readonly code: number | string | null
  readonly out: string
  readonly err: string
}

const kernelUrl = new URL('./kernel.ts', import.meta.url).href
const workUrl = new URL('../../../testing/kernel/fixtures/work.ts', import.meta.url).href
let folder: string

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'heddle-program-'))
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

let count = 0

function run(body: string, flags: string[] = []): Promise<Ended> {
  const file = join(folder, `program${count++}.ts`)
  writeFileSync(
    file,
    `import { Kernel } from ${JSON.stringify(kernelUrl)}
const workUrl = new URL(${JSON.stringify(workUrl)})
type Work = typeof import('./none.ts')
${body}
`,
  )
  return new Promise(resolve => {
    execFile(process.execPath, [...flags, file], { timeout: 300_000 }, (error, out, err) => {
      resolve({ code: error === null ? 0 : (error.code ?? error.signal ?? null), out, err })
    })
  })
}

describe('a program', () => {
  test('that has finished exits by itself, although its kernel is not closed', async () => {
    const ended = await run(`
      const kernel = await Kernel.boot({ cpus: 2 })
      const work = await kernel.import(workUrl)
      console.log(await kernel.spawn(work.add, [1, 2]))
    `)
    expect(ended).toEqual({ code: 0, out: '3\n', err: '' })
  })

  test('is kept alive by a running task, and ends after it', async () => {
    const ended = await run(`
      const kernel = await Kernel.boot({ cpus: 1 })
      const work = await kernel.import(workUrl)
      kernel.spawn(work.naps, [200]).then(value => console.log(value))
      console.log('end of main')
    `)
    expect(ended).toEqual({ code: 0, out: 'end of main\nslept\n', err: '' })
  })

  test('is kept alive by a child that has outlived its parent', async () => {
    const ended = await run(`
      const kernel = await Kernel.boot({ cpus: 1 })
      const work = await kernel.import(workUrl)
      kernel.on('failure', ({ error }) => console.log(error.message))
      console.log(await kernel.spawn(work.leavesChild, ['outlived']))
    `)
    expect(ended).toEqual({ code: 0, out: 'left\noutlived\n', err: '' })
  })

  test('closes its kernel at the end of the block, with `await using`', async () => {
    const ended = await run(`
      {
        await using kernel = await Kernel.boot({ cpus: 1 })
        const work = await kernel.import(workUrl)
        kernel.spawn(work.naps, [20]).then(value => console.log(value))
      }
      console.log('closed')
    `)
    expect(ended).toEqual({ code: 0, out: 'slept\nclosed\n', err: '' })
  })

  test('is not kept alive by a task that never ends, if it closes its kernel with a deadline before `await using` does', async () => {
    const ended = await run(`
      {
        await using kernel = await Kernel.boot({ cpus: 1 })
        const work = await kernel.import(workUrl)
        kernel.spawn(work.hog).catch(error => console.log(error.message))
        void kernel.close({ deadline: 10 })
      }
      console.log('closed')
    `)
    expect(ended).toEqual({
      code: 0,
      out: 'task hog was killed because its kernel closed\nclosed\n',
      err: '',
    })
  })

  test('can be interrupted while `await using` waits for a task that never ends', async () => {
    const ended = await run(`
      await using kernel = await Kernel.boot({ cpus: 1 })
      const work = await kernel.import(workUrl)
      void kernel.spawn(work.hog)
      setImmediate(() => process.kill(process.pid, 'SIGINT'))
    `)
    expect(ended).toEqual({ code: 'SIGINT', out: '', err: '' })
  })

  test('that does not join a failing task ends with its error, and the place that spawned the task', async () => {
    const ended = await run(`
      const kernel = await Kernel.boot({ cpus: 1 })
      const work = await kernel.import(workUrl)
      kernel.spawn(work.fails, ['nobody asked'])
      setTimeout(() => console.log('too late'), 60_000)
    `)
    expect(ended.code).toBe(1)
    expect(ended.out).toBe('')
    expect(ended.err).toMatch(/RangeError: nobody asked\n\s+at fails/)
    expect(ended.err).toMatch(/at task fails #\d+\n\s+at .*program\d+\.ts/)
  })

  test('runs under tsx, whose loader its CPUs inherit', async () => {
    const ended = await run(
      `
      enum Answer { yes = 42 }
      const kernel = await Kernel.boot({ cpus: 1 })
      const work = await kernel.import(workUrl)
      console.log(await kernel.spawn(work.echo, [Answer.yes]), await kernel.spawn(work.crunch, [1e6]))
      await kernel.close()
    `,
      ['--import', import.meta.resolve('tsx')],
    )
    expect(ended).toEqual({ code: 0, out: '42 999989\n', err: '' })
  })

  test('shows the output of a running task, and ends although a task left a timer', async () => {
    const ended = await run(`
      const kernel = await Kernel.boot({ cpus: 1 })
      const work = await kernel.import(workUrl)
      const seen = new Int32Array(new SharedArrayBuffer(4))
      let lines = 0
      const write = process.stdout.write
      process.stdout.write = function (text, ...rest) {
        lines += String(text).split('line').length - 1
        if (lines === 5) Atomics.store(seen, 0, 1)
        return write.call(this, text, ...rest)
      }
      await kernel.spawn(work.leavesTimer)
      console.log(await kernel.spawn(work.prints, [5, seen]))
      await kernel.close()
    `)
    expect(ended).toEqual({ code: 0, out: 'line 0\nline 1\nline 2\nline 3\nline 4\nseen\n', err: '' })
  })

  test('passes flags and limits to each CPU', async () => {
    const ended = await run(`
      const kernel = await Kernel.boot({ cpus: 1, execArgv: ['--no-warnings'], resourceLimits: { maxOldGenerationSizeMb: 64 } })
      const work = await kernel.import(workUrl)
      console.log(await kernel.spawn(work.flags), await kernel.spawn(work.crunch, [1e6]))
      await kernel.close()
    `)
    expect(ended).toEqual({ code: 0, out: '--no-warnings 64 999989\n', err: '' })
  })
})

describe('on simulated CPUs', () => {
  const program = (seed: number): string => `
    const kernel = await Kernel.boot({ machine: 'simulated', seed: ${seed}, cpus: 3, debug: true })
    const work = await kernel.import(workUrl)
    const tasks = []
    for (let n = 0; n < 20; n++) {
      const task = kernel.spawn(n % 3 === 0 ? work.primes : n % 3 === 1 ? work.naps : work.counts, [n * 7 + 1])
      tasks.push(task)
      task.then(value => console.log(n, value, task.status.cpu, task.status.started, task.status.ended))
    }
    tasks.push(kernel.spawn(work.hog, [], { timeout: undefined }))
    setTimeout(() => tasks.at(-1).kill(), 0)
    await Promise.allSettled(tasks)
    console.log(await kernel.spawn(work.family, [4]))
    console.log(await kernel.spawn(work.naps, [1e8]), await kernel.spawn(work.waits, [1]))
    await kernel.close()
  `

  test('the same program gives the same bytes for the same seed, in virtual time', async () => {
    const [first, second] = await Promise.all([run(program(7)), run(program(7))])
    expect(first.err).toBe('')
    expect(first.code).toBe(0)
    expect(first.out).toContain("{ sum: 14, local: 'local 4'")
    expect(second.out).toBe(first.out)
  })

  test('another seed gives another order', async () => {
    const [first, second] = await Promise.all([run(program(7)), run(program(8))])
    expect(second.out).not.toBe(first.out)
  })
})
