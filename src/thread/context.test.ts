import { afterEach, expect, test } from 'vitest'
import { enterKernel, here, leaveKernel, switchTo, type ThreadCpu, type ThreadView } from './context.ts'
import type { Runner } from './runner.ts'

const view = (): ThreadView => ({ futexes: {} })
const runner = (): Runner => ({ park: () => ({ wake() {}, fail() {} }), unpark() {}, progress() {} })
const entered: ThreadView[] = []

function enter(): ThreadView {
  const made = view()
  enterKernel(made)
  entered.push(made)
  return made
}

afterEach(() => {
  switchTo(null, null)
  for (const one of entered.splice(0)) leaveKernel(one)
})

test('a thread is in the kernel that it entered last, and after that in the one before', () => {
  const first = enter()
  const second = enter()
  expect([here.view, here.futexes]).toEqual([second, second.futexes])
  leaveKernel(second)
  expect(here.view).toBe(first)
  expect(here.futexes).toBe(first.futexes)
  leaveKernel(first)
  expect([here.view, here.futexes]).toEqual([null, null])
})

test('leaving a kernel that is not the newest changes nothing, and neither does leaving one twice', () => {
  const first = enter()
  const second = enter()
  leaveKernel(first)
  leaveKernel(first)
  expect(here.view).toBe(second)
})

test('while a CPU runs a task, the thread sees the view of that CPU', () => {
  const own = enter()
  const cpu: ThreadCpu & Runner = { ...runner(), view: view() }
  switchTo(cpu, cpu)
  expect(here.view).toBe(cpu.view)
  expect(here.futexes).toBe(cpu.view.futexes)
  switchTo(null, null)
  expect(here.view).toBe(own)
  expect(here.futexes).toBe(own.futexes)
})

test('a kernel that is booted or closed inside a task counts when the task has stopped', () => {
  const own = enter()
  const cpu: ThreadCpu & Runner = { ...runner(), view: view() }
  switchTo(cpu, cpu)
  const inside = enter()
  expect(here.view).toBe(cpu.view)
  switchTo(null, null)
  expect(here.view).toBe(inside)
  switchTo(cpu, cpu)
  leaveKernel(inside)
  switchTo(null, null)
  expect(here.view).toBe(own)
})

test('a switch forgets the task and the TID of the coroutine that ran before', () => {
  switchTo(runner(), null)
  here.task = {}
  here.tid = 7
  switchTo(runner(), null)
  expect([here.task, here.tid]).toEqual([null, 0])
})

test('a switch between coroutines keeps the domain of a thread that is in no kernel', () => {
  const domain = {}
  here.futexes = domain
  switchTo(runner(), null)
  expect(here.futexes).toBe(domain)
  switchTo(null, null)
  expect(here.futexes).toBe(domain)
  here.futexes = null
})
