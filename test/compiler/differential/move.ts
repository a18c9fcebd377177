/** Runs a program that moves at every safepoint: its frames become bytes, and continue from them. */
import { coroutineOf, setSafepointFlag } from '../../../src/coroutine/core/coroutine.ts'
import { registerMovable } from '../../../src/coroutine/core/movable.ts'
import { obstacleOf, packFrames, unpackFrames } from '../../../src/coroutine/core/packedframes.ts'
import * as runtime from '../../../src/compiler/runtime.ts'
import type { CompileOptions } from '../../../src/compiler/compile.ts'
import { renamed } from '../../../testing/payload/images.ts'
import { imageFromBytes, imageToBytes } from '../../../src/payload/imagebytes.ts'
import { UntravelableError } from '../../../src/payload/untravelable.ts'
import { evaluateModule, evaluateScript, type Namespace } from './evaluate.ts'
import { type Log, observe, type Outcome, type Program } from './drive.ts'
import { outputOf } from './programs.ts'

export interface Moved extends Outcome {
  preemptions: number
  moves: number
  /** Why the other preemptions were no moves. */
  obstacles: Map<string, number>
}

const raised = Int32Array.of(1)
const lowered = Int32Array.of(0)
const preemptions_max = 5_000_000

let instances = 0

/** A fresh instance of a module that is compiled movable. */
export function movable(source: string, file: string, options: CompileOptions = {}): Namespace {
  return instantiate(outputOf(source, file, { ...options, movable: true }).code, file)
}

/** A fresh instance of compiled text, at an address of its own. */
export function instantiate(code: string, file: string, others: Record<string, Namespace> = {}): Namespace {
  const url = `test:${instances++}`
  const modules = { ...others, 'heddle/runtime': runtime, url: url as unknown as Namespace }
  return file.endsWith('.cjs')
    ? evaluateScript(code.replaceAll('__filename', `require('url')`), file, modules)
    : evaluateModule(code, file, modules)
}

/** `moves`: whether it moves at the next safepoint. Default: at each. */
export async function runMoved(program: Program, moves?: () => boolean): Promise<Moved> {
  const counts = { preemptions: 0, moves: 0, obstacles: new Map<string, number>() }
  const outcome = await observe((log: Log) => {
    // The effects of the program are calls of this function, which every copy of the task finds by name.
    const key = `log${instances++}`
    registerMovable('test', '', [{ key, hash: '', value: () => log }])
    const { threw, value } = driveMoved(program, [log], counts, { moves })
    if (threw) throw value
    return value
  })
  return { ...outcome, ...counts }
}

interface MoveOptions {
  copies?: readonly [string, string]
  first?: number
  moves?: (() => boolean) | undefined
  self?: unknown
}

/**
 * Runs the program, and moves it at the first safepoints, then now and then. `copies`: the ends of the
 * addresses of two copies of its modules, of equal length. It then moves from one copy to the other, as
 * between two CPUs.
 */
export function driveMoved(
  program: (...args: any[]) => unknown,
  args: unknown[],
  counts: { preemptions: number; moves: number; obstacles: Map<string, number> },
  { copies, first = 2000, moves = () => true, self }: MoveOptions = {},
): { threw: boolean; value: unknown } {
  let here = 0
  let coroutine = coroutineOf(program, args, self)
  setSafepointFlag(raised, 0)
  try {
    for (let finished = coroutine.start(); !finished; finished = coroutine.resume()) {
      if (coroutine.state !== 'preempted') throw new Error(`the coroutine is ${coroutine.state}`)
      if (++counts.preemptions > preemptions_max) throw new Error(`${program.name} goes on and on`)
      setSafepointFlag(lowered, 0)
      // A deep stack moves now and then: each move costs as much as it has frames.
      if ((counts.preemptions > first && counts.preemptions % 499 !== 0) || !moves()) {
        setSafepointFlag(raised, 0)
        continue
      }
      const obstacle = obstacleOf(coroutine) ?? move()
      setSafepointFlag(raised, 0)
      if (obstacle === null) counts.moves++
      else counts.obstacles.set(obstacle, (counts.obstacles.get(obstacle) ?? 0) + 1)
    }
  } finally {
    setSafepointFlag(lowered, 0)
  }
  return { threw: coroutine.state === 'threw', value: coroutine.result }

  function move(): string | null {
    try {
      const written = imageToBytes({ frames: packFrames(coroutine) }, '')
      const bytes = copies === undefined ? written : renamed(written, copies[here], copies[(here ^= 1)])
      coroutine = unpackFrames((imageFromBytes(bytes) as { frames: unknown }).frames)
      return null
    } catch (error) {
      if (error instanceof UntravelableError) return error.message
      throw error
    }
  }
}
