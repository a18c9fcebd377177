import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { pages, withFigures } from '../bench/figures.ts'
import { growth, reportPage } from '../bench/report.ts'
import { loadResults } from '../bench/results.ts'
import type { Row } from '../bench/harness.ts'

const row = (more: Partial<Row>): Row => ({
  row: 'part/name',
  value: 1,
  unit: 'ns',
  rounds: 10,
  spread: [1, 1],
  ...more,
})

test.each(pages())('%s has the figures of the run that is checked in', page => {
  const text = readFileSync(page, 'utf8')
  expect(withFigures(text, loadResults())).toBe(text)
})

test('the rows of a part are a table, between its marks', () => {
  const results = {
    commit: 'abc',
    date: 'today',
    seconds: 1,
    machine: { cpu: 'one', cores: 2, memoryGiB: 8, system: 'linux' },
    versions: { node: 'v26' },
    omitted: [],
    rows: [
      row({ row: 'sched/slow', ratio: 6, base: 2, against: 'bare', target: { most: 5 } }),
      row({ row: 'sched/alone' }),
      row({ row: 'pi/other' }),
    ],
  }
  const text = 'before\n<!-- rows: sched -->\nold\n<!-- end of rows -->\nafter'
  expect(withFigures(text, results).split('\n')).toEqual([
    'before',
    '<!-- rows: sched -->',
    '',
    '`npm run bench -- sched`',
    '',
    '| row | value | ratio (quartiles) | target | against |',
    '| --- | --- | --- | --- | --- |',
    '| `sched/slow` | 1 ns | 6 (1 to 1) | at most 5×: **missed** | bare (2 ns) |',
    '| `sched/alone` | 1 ns |  |  |  |',
    '',
    '<!-- end of rows -->',
    'after',
  ])
  const targets = withFigures(text.replace('rows: sched', 'targets: sched'), results)
  expect(targets).toContain('sched/slow')
  expect(targets).not.toContain('sched/alone')
})

test('the report has every row, its target and whether it was met, and a plot for each series', () => {
  const page = reportPage({
    commit: 'abc',
    date: 'today',
    seconds: 1,
    machine: { cpu: 'a <fast> one', cores: 2, memoryGiB: 8, system: 'linux' },
    versions: { node: 'v26' },
    omitted: ['Go: not installed'],
    rows: [
      row({ row: 'sched/yield', ratio: 4, base: 2, against: 'bare', target: { most: 5 } }),
      row({ row: 'sched/slow', ratio: 6, base: 2, against: 'bare', target: { most: 5 } }),
      row({ row: 'growth/a-1', series: 'growth/a', x: 1, value: 10, xName: 'tasks' }),
      row({ row: 'growth/a-100', series: 'growth/a', x: 100, value: 11, xName: 'tasks' }),
    ],
  })
  expect(page).toContain('class="met">✓</span> sched/yield')
  expect(page).toContain('class="missed">✗</span> sched/slow')
  expect(page).toContain('a &lt;fast> one')
  expect(page).toContain('Left out: Go: not installed')
  expect(page.match(/<svg/g)).toHaveLength(1)
  expect(page).toContain('constant (x to the 0.02): 10 ns at 1, 11 ns at 100 tasks.')
})

test('growth is described by the slope', () => {
  const series = (power: number): Row[] =>
    [1, 10, 100, 1000].map(x => row({ x, value: 5 * x ** power, xName: 'n' }))
  expect(growth(series(0))).toMatch(/^constant/)
  expect(growth(series(0.5))).toMatch(/^grows slower than linearly/)
  expect(growth(series(1))).toMatch(/^linear/)
  expect(growth(series(2))).toMatch(/^grows faster than linearly/)
  expect(growth(series(-1))).toMatch(/^falls/)
})
