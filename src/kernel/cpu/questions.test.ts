/** Questions of tasks to the booting thread. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Kernel } from '../boot/kernel.ts'
import type * as Work from '../../../testing/kernel/fixtures/asking.ts'

let kernel: Kernel
let work: any

beforeAll(async () => {
  kernel = await Kernel.boot({ cpus: 2, control: false })
  work = await kernel.import<typeof Work>(
    new URL('../../../testing/kernel/fixtures/asking.ts', import.meta.url),
  )
})

afterAll(async () => await kernel.close())

function answered(task: any, answerer: (question: any) => unknown): Promise<any> {
  kernel.internals.view.booter!.mail.answers(task, answerer)
  return task
}

test('a task waits for the answer to its question, which may be a promise', async () => {
  const task = kernel.spawn(work.asks, ['how many'])
  expect(await answered(task, question => Promise.resolve(`${question.text}: 3`))).toBe('how many: 3')
})

test('an error of the answerer is thrown into the task, with its name and code', async () => {
  const task = kernel.spawn(work.asks, ['how many'])
  const error = Object.assign(new RangeError('too many'), { code: 'E_MANY', socket: () => undefined })
  await expect(answered(task, () => Promise.reject(error))).rejects.toMatchObject({
    name: 'RangeError',
    message: 'too many',
    code: 'E_MANY',
  })
})

test('a question that nobody answers is an error', async () => {
  await expect(kernel.spawn(work.asks, ['?'])).rejects.toMatchObject({ code: 'ERR_HEDDLE_NOBODY_ANSWERS' })
})

test('a task that is killed while it waits ends, and the late answer is dropped', async () => {
  const task = kernel.spawn(work.asks, ['slow'])
  let answer: (value: string) => void = () => undefined
  const asked = new Promise<void>(resolve => {
    answered(task, () => {
      resolve()
      return new Promise(answers => (answer = answers))
    }).catch(() => undefined)
  })
  await asked
  task.kill('enough')
  await expect(task).rejects.toMatchObject({ code: 'ERR_HEDDLE_TASK_KILLED' })
  answer('late')
  expect(await answered(kernel.spawn(work.asks, ['next']), () => 'yes')).toBe('yes')
})

test('a task can move before and after a question, and not while it waits', async () => {
  const task = kernel.spawn(work.asksAndMoves, [20], { movable: true })
  let asked = 0
  const result = answered(task, question => {
    asked++
    task.setAffinity([question.cpu === 0 ? 1 : 0])
    return question.round
  })
  expect(await result).toBe(190)
  expect(asked).toBe(20)
  expect(task.status.moves).toBeGreaterThanOrEqual(19)
})
