import { expect, test } from 'vitest'
import { type Program, runPlain, runTwin } from './drive.ts'
import { compiled, outputOf, plain } from './programs.ts'

/** Constructs that the compiler leaves plain, each on the line with HERE. */
const constructs: [name: string, body: string][] = [
  [
    'a getter that loops',
    `const o = {\n get size() { /* HERE */ for (let i = 0; i < 3; i++) log(i); return 1 } }; log(o.size)`,
  ],
  [
    'a setter that loops',
    `const o = {\n set value(v) { /* HERE */ for (let i = 0; i < v; i++) log(i) } }; o.value = 2`,
  ],
  [
    'a constructor that is asked for as a generator',
    `class C {\n constructor() { 'use task generator'; /* HERE */ for (let i = 0; i < 3; i++) log(i) } }; new C()`,
  ],
  ['a field that calls what is long', `class C {\n f = slow(log) /* HERE */ }; log(new C().f)`],
  [
    'a static block that loops',
    `class C {\n static { for (let i = 0; i < 3; i++) /* HERE */ log(i) } }; log(C.name)`,
  ],
  [
    'a parameter default that calls what is long',
    `const f = (\n a = slow(log) /* HERE */) => a; for (let i = 0; i < 2; i++) log(f())`,
  ],
  [
    'an async generator',
    `const f = \nasync function* () { /* HERE */ for (let i = 0; i < 3; i++) yield log(i) }; return f().next()`,
  ],
  [
    'a disposal that awaits',
    `const f = async () => {\n await using a = { async [Symbol.asyncDispose]() { log('gone') } } /* HERE */; for (let i = 0; i < 2; i++) log(i) }; return f()`,
  ],
  [
    'an eval',
    `const f = n => { for (let i = 0; i < n; i++) log(i); return (\n eval('n + 1') /* HERE */) }; log(f(2))`,
  ],
]

test.each(constructs)('%s stays plain, works, and causes a warning at its position', async (_, body) => {
  const source = `'use task'\nconst slow = log => { for (let i = 0; i < 2; i++) log('slow', i); return 's' }\nexport function main(log) { for (let i = 0; i < 2; i++) log('turn', i);\n${body}\n}\n`
  const { diagnostics } = outputOf(source, 'plain.js')
  const line = source.split('\n').findIndex(text => text.includes('HERE')) + 1
  const told = diagnostics.filter(diagnostic => diagnostic.line === line)
  expect(told, JSON.stringify(diagnostics)).toHaveLength(1)
  expect(told[0]).toMatchObject({ severity: 'warning', file: 'plain.js' })
  expect(told[0]!.message).toMatch(/stays plain: \S/)
  expect(told[0]!.frame).toContain('HERE')

  const expected = await runPlain(plain(source, 'plain.js')['main'] as Program)
  const { preemptions, ...preempted } = await runTwin(compiled(source, 'plain.js')['main'] as Program, true)
  expect(preempted).toEqual(expected)
  expect(preemptions).toBeGreaterThan(0)
})
