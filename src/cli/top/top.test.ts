import { describe, expect, it } from 'vitest'
import type { KernelSnapshot, TaskSnapshot } from '../../trace/snapshot.ts'
import { terminalOf } from '../terminal.ts'
import { keysOf, press } from './keys.ts'
import { listed, newModel, type TopModel, update } from './model.ts'
import { draw } from './screen.ts'

function task(id: number, name: string, more: Partial<TaskSnapshot> = {}): TaskSnapshot {
  return {
    id,
    slot: id,
    name,
    code: null,
    state: 'runnable',
    sleep: null,
    cpu: 0,
    started: true,
    priority: 128,
    basePriority: 128,
    nice: 0,
    runTime: 0,
    waitTime: 0,
    switches: 0,
    preemptions: 0,
    waitsFor: null,
    contendedLocks: 0,
    moves: 0,
    killed: false,
    ...more,
  }
}

function snapshot(time: number, ran: readonly [number, number, number]): KernelSnapshot {
  const cpu = { online: true, switches: 0, preemptions: 0, migrations: 0, steals: 0, moves: 0, wakeups: 0 }
  return {
    time,
    cpus: [
      { ...cpu, cpu: 0, busyTime: ran[0], load: 2, running: 'render' },
      { ...cpu, cpu: 1, busyTime: 0, load: 0, running: null },
    ],
    tasks: [
      task(1, 'parse', { runTime: ran[1], state: 'sleeping', waitsFor: 'futex 3:17' }),
      task(2, 'render', { runTime: ran[2], state: 'running', priority: 40 }),
      task(3, 'write log', { state: 'stopped', killed: true, contendedLocks: 2 }),
    ],
  }
}

function model(): TopModel {
  const made = newModel()
  update(made, snapshot(1000, [100, 50, 20]))
  update(made, snapshot(2000, [600, 150, 620]))
  return made
}

const plain = { ...terminalOf({}, { LANG: 'C' }), columns: 120, rows: 14 }
const screen = (of: TopModel): string => draw(of, 'heddle top  t.ts (1)', plain).join('\n')
const names = (of: TopModel): string[] => listed(of).map(row => row.name)

describe('heddle top', () => {
  it('shows each CPU with its load since the last snapshot, and the tasks by CPU time', () => {
    const lines = draw(model(), 'heddle top  t.ts (1)', plain)
    expect(lines).toHaveLength(14)
    expect(lines[0]).toBe(
      'heddle top  t.ts (1)  up 2.00 s  3 tasks: 1 running, 0 runnable, 1 sleeping, 1 stopped',
    )
    expect(lines[2]).toBe(`CPU  0 ${'#'.repeat(20)}${'.'.repeat(20)}  50 %   2 queued  render`)
    expect(lines[3]).toBe(`CPU  1 ${'.'.repeat(40)}   0 %   0 queued  idle`)
    expect(lines[6]).toMatch(/^> +2 running +0 +128\^40 +60 +620 ms .* render$/)
    expect(lines[7]).toMatch(/^ +1 sleeping +0 +128 +10 +150 ms +0.0 µs futex 3:17 +parse$/)
    expect(lines[8]).toMatch(/ 3 stopped .* 2 write log \(killed\)$/)
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(120)
  })

  it('omits columns on a narrow terminal, and draws no line wider than it', () => {
    for (const columns of [20, 40, 60, 80]) {
      for (const line of draw(model(), 'heddle top', { ...plain, columns })) {
        expect(line.length).toBeLessThanOrEqual(Math.max(columns, 60))
      }
    }
  })

  it('orders by another column, and in reverse', () => {
    const of = model()
    expect(names(of)).toEqual(['render', 'parse', 'write log'])
    for (const key of ['o', 'o', 'o', 'o']) press(of, key)
    expect(of.sort).toBe('name')
    expect(names(of)).toEqual(['parse', 'render', 'write log'])
    press(of, 'r')
    expect(names(of)).toEqual(['write log', 'render', 'parse'])
  })

  it('filters after each key, by name or by state', () => {
    const of = model()
    for (const key of keysOf('/Log')) press(of, key)
    expect(screen(of)).toContain('filter: Log_')
    expect(names(of)).toEqual(['write log'])
    press(of, 'enter')
    expect(of.mode).toBe('list')
    press(of, 'escape')
    expect(names(of)).toHaveLength(3)
    for (const key of keysOf('/running\r')) press(of, key)
    expect(names(of)).toEqual(['render'])
    for (const key of keysOf('/xyz\r')) press(of, key)
    expect(screen(of)).toContain('no task matches "runningxyz"')
  })

  it('stops, continues and kills the selected task', () => {
    const of = model()
    expect(press(of, 's')).toEqual({ op: 'stop', task: 2 })
    press(of, 'down')
    expect(press(of, 'c')).toEqual({ op: 'continue', task: 1 })
    for (const key of ['page down', 'down']) press(of, key)
    expect(press(of, 'k')).toEqual({ op: 'kill', task: 3 })
    press(of, 'page up')
    expect(press(of, 's')).toEqual({ op: 'stop', task: 2 })
  })

  it('changes a priority by name or number, and cancels on escape', () => {
    const of = model()
    for (const key of keysOf('phigh')) expect(press(of, key)).toBeNull()
    expect(screen(of)).toContain('priority of 2 (realtime, high, normal, low, idle or 4 to 251): high_')
    expect(press(of, 'enter')).toEqual({ op: 'priority', task: 2, priority: 'high' })
    for (const key of keysOf('p40')) press(of, key)
    press(of, 'backspace')
    press(of, '1')
    expect(press(of, 'enter')).toEqual({ op: 'priority', task: 2, priority: 41 })
    for (const key of keysOf('p9')) press(of, key)
    expect(press(of, 'escape')).toBeNull()
    expect(of.mode).toBe('list')
  })

  it('keeps the cursor on its task when the order changes', () => {
    const of = model()
    press(of, 'down')
    update(of, snapshot(3000, [600, 1150, 620]))
    expect(names(of)[0]).toBe('parse')
    expect(press(of, 's')).toEqual({ op: 'stop', task: 1 })
  })

  it('pauses the display, shows help, and quits', () => {
    const of = model()
    press(of, ' ')
    expect(of.paused).toBe(true)
    expect(screen(of)).toContain('[paused]')
    press(of, 'h')
    expect(screen(of)).toContain('any key closes this page')
    expect(press(of, 'q')).toBeNull()
    expect(of.mode).toBe('list')
    expect(press(of, 'q')).toBe('quit')
    expect(press(of, 'ctrl c')).toBe('quit')
  })

  it('splits one input into several keys', () => {
    expect(keysOf('\u001b[A\u001bOB\u001b[6~q\r\u007f\u0003\u001b')).toEqual([
      'up',
      'down',
      'page down',
      'q',
      'enter',
      'backspace',
      'ctrl c',
      'escape',
    ])
  })

  it('ignores keys for a task when there are no tasks', () => {
    const of = newModel()
    expect(screen(of)).toContain('waiting for the first snapshot')
    expect(press(of, 'k')).toBeNull()
  })
})
