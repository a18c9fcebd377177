import { describe, expect, test } from 'vitest'
import { moduleReferences } from './references.ts'

const found = (source: string, own = false): [string, boolean][] =>
  moduleReferences(source, 'main.ts', own).map(({ specifier, isWorker }) => [specifier, isWorker])

describe('a module that is named by URL', () => {
  test('is found if it is imported into a kernel, with types and without', () => {
    expect(
      found(`kernel.import<typeof import('./work.ts')>(new URL('./work.ts', import.meta.url))
             kernel.import(new URL("../lib/more.mjs", import.meta.url).href)`),
    ).toEqual([
      ['./work.ts', false],
      ['../lib/more.mjs', false],
    ])
  })

  test('is found anywhere in a module that imports heddle, even only a type of it', () => {
    const use = `const where = new URL('./work.ts', import.meta.url)`
    expect(found(`import { Kernel } from 'heddle'\n${use}`)).toEqual([['./work.ts', false]])
    expect(found(`import type { Kernel } from 'heddle'\n${use}`)).toEqual([['./work.ts', false]])
    expect(found(`import Piscina from 'heddle/piscina'\n${use}`)).toEqual([['./work.ts', false]])
    expect(found(`import { x } from 'heddles'\n${use}`)).toEqual([])
    expect(found(use)).toEqual([])
  })

  test('is left to the bundler if it is a worker, a worklet, no script, or known only at run time', () => {
    expect(
      found(`import 'heddle'
        new Worker(new URL('./mine.ts', import.meta.url), { type: 'module' })
        new threads.Worker(new URL('./mine.ts', import.meta.url))
        context.audioWorklet.addModule(new URL('./sound.js', import.meta.url))
        navigator.serviceWorker.register(new URL('./service.js', import.meta.url))
        kernel.import(new URL('./picture.png', import.meta.url))
        kernel.import(new URL('./raw.ts?url', import.meta.url))
        kernel.import(new URL(name, import.meta.url))
        kernel.import(new URL('./work.ts', base))
        kernel.import(new URL('https://example.org/work.js'))`),
    ).toEqual([])
  })

  test('may be a worker in heddle itself', () => {
    expect(found(`new Worker(new URL('./web-cpu.js', import.meta.url), { type: 'module' })`, true)).toEqual([
      ['./web-cpu.js', true],
    ])
  })

  test('is not found in text that does not parse, nor in comments and strings', () => {
    expect(found(`import 'heddle'\nkernel.import(new URL('./work.ts', import.meta.url)`)).toEqual([])
    expect(
      found(
        `import 'heddle'\n// new URL('./work.ts', import.meta.url)\n"new URL('./w.ts', import.meta.url)"`,
      ),
    ).toEqual([])
  })
})
