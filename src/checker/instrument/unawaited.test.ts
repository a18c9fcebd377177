import { beforeAll, describe, expect, test } from 'vitest'
import { check, CheckError, type Program } from '../check.ts'
import { loadInstrumented } from '../../../testing/checker/programs/load.ts'
import type { Way } from '../../../testing/checker/programs/unawaited.ts'

type Programs = typeof import('../../../testing/checker/programs/unawaited.ts')
let programs: Programs
beforeAll(async () => {
  programs = await loadInstrumented<Programs>(
    new URL('../../../testing/checker/programs/unawaited.ts', import.meta.url),
  )
})

/** The final values of the word in a check of one way. */
function stored(way: Way): number[] {
  const found = new Set<number>()
  check(way.way, (): Program => {
    const words = new Int32Array(new SharedArrayBuffer(4))
    return { threads: programs.threads(way, words), final: () => void found.add(words[0]!) }
  })
  return [...found]
}

describe('an async function', () => {
  test('that waits and is not awaited where it is called is refused, however it is called', () => {
    const passed: string[] = []
    for (const way of programs.beside) {
      try {
        passed.push(`${way.way}: ${stored(way).join()}`)
      } catch (error) {
        if (!(error instanceof CheckError)) throw error
        expect(error.code, way.way).toBe('ERR_CHECK_UNINSTRUMENTED')
        expect(error.message, way.way).toMatch(/unawaited\.ts:\d+:\d+/)
      }
    }
    expect(passed).toEqual([])
  })

  test('that is awaited where it is called runs in turn, through functions that return its call', () => {
    for (const way of programs.inTurn) expect(stored(way), way.way).toEqual([2])
  })
})
