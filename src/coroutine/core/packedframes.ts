/**
 * The saved frames of a coroutine as one value, which travels in an image (payload/imagekinds.ts).
 *
 *   packFrames        obstacleOf said null; the coroutine stays as it was
 *   encode, decode    by the codec; all frames are one graph: what two frames share stays one object
 *   unpackFrames      a coroutine that continues where the other one stopped
 *
 * The sender must then forget its own coroutine: two that continue would be two tasks.
 */
import { ImageError, registerImageKind } from '../../payload/imagekinds.ts'
import { type Coroutine, continued, framesIn, type FunctionCoroutine } from './coroutine.ts'
import { type Reenter, resumesGenerator, type SavedFrame } from './frames.ts'
import { afterSleep } from './blocking.ts'
import {
  changedState,
  enterFrames,
  movableOf,
  registerMovable,
  restoreSearches,
  searchesAround,
} from './movable.ts'

/** One frame. Its parts, in their order: the second form, the place, `this`, the values. */
class PackedFrame {
  reenter: Reenter | null = null
  place = 0
  self: unknown = undefined
  values: readonly unknown[] = []
}

/** The frames of a coroutine, the innermost first. */
export class PackedFrames {
  /** Whether it was blocked when it was packed: its waker resumes it, with a value. */
  isSuspended = false
  preemptionDepth = 0
  /** The positions of regular expressions that modules hold. */
  searches: ReadonlyMap<unknown, number> = new Map()
  frames: readonly PackedFrame[] = []
}

const PARTS_BEFORE = 3

function isPlace(place: unknown, places: number | undefined): boolean {
  return (
    Number.isInteger(place) &&
    (places === undefined || ((place as number) >= 1 && (place as number) <= places))
  )
}

registerImageKind<PackedFrame>(PackedFrame.prototype, {
  name: 'frame',
  parts: ({ reenter, place, self, values }) => [reenter, place, self, ...values],
  create: () => new PackedFrame(),
  fill(frame, parts) {
    const [reenter, place, self] = parts
    if (typeof reenter !== 'function' || movableOf(reenter as Reenter) === undefined)
      throw new ImageError('the image is damaged: a frame without its function; use another copy of it')
    // A second form that knows no such place would look for it for ever.
    if (!isPlace(place, movableOf(reenter as Reenter)?.places))
      throw new ImageError('the image is damaged: a frame without its place; use another copy of it')
    frame.reenter = reenter as Reenter
    frame.place = place as number
    frame.self = self
    frame.values = parts.slice(PARTS_BEFORE)
  },
  steps({ reenter }, part) {
    if (part < PARTS_BEFORE) return [['function', 'place', 'this'][part]]
    const index = part - PARTS_BEFORE
    return ['values', movableOf(reenter)?.slots?.[index] ?? index]
  },
})

registerImageKind<PackedFrames>(PackedFrames.prototype, {
  name: 'frames',
  parts({ isSuspended, preemptionDepth, searches, frames }) {
    enterFrames(frames.map(({ reenter }) => reenter))
    return [isSuspended, preemptionDepth, searches.size, ...[...searches].flat(), ...frames]
  },
  create: () => new PackedFrames(),
  fill(packed, [isSuspended, preemptionDepth, count, ...rest]) {
    const searches = rest.slice(0, Number(count) * 2)
    const frames = rest.slice(searches.length)
    if (!frames.every(frame => frame instanceof PackedFrame) || frames.length === 0)
      throw new ImageError('the image is damaged: a task without frames; use another copy of it')
    packed.isSuspended = isSuspended === true
    packed.preemptionDepth = Number(preemptionDepth)
    packed.searches = new Map(
      searches.flatMap((search, at) =>
        at % 2 === 0 && search instanceof RegExp ? [[search, Number(searches[at + 1])] as const] : [],
      ),
    )
    packed.frames = frames as PackedFrame[]
  },
  steps({ searches }, part) {
    const before = 3 + searches.size * 2
    if (part < 3) return [['isSuspended', 'preemptionDepth', 'searches'][part]]
    return part < before ? ['searches', part - 3] : [part - before]
  },
})

registerMovable('heddle', 'heddle', [{ key: 'sleep', hash: '1', reenter: afterSleep }])

/**
 * Why the coroutine cannot move now: its text names the frame that cannot. Null: every frame on its stack
 * can. Only for a coroutine that has stopped.
 */
export function obstacleOf(coroutine: Coroutine): string | null {
  const top = framesIn(coroutine)
  if (top === null) return coroutine.state === 'ready' ? 'it has not started' : 'it runs as a generator'
  for (let frame: SavedFrame | null = top; frame !== null; frame = frame.below) {
    const { reenter } = frame
    if (movableOf(reenter) !== undefined) continue
    if (resumesGenerator(reenter)) return `a generator is on its stack${beside(frame)}`
    const name = reenter?.name ?? ''
    return name === ''
      ? 'a function that is not movable is on its stack'
      : `${name} is on its stack, and is not movable`
  }
  return null
}

/** The function that called the generator, which has no name that a reader knows. */
function beside({ below }: SavedFrame): string {
  const name = below?.reenter?.name ?? ''
  return name === '' ? '' : `: a blocking call or a generator that ${name} called`
}

/** The frames of a coroutine that has stopped, and that has no obstacle. */
export function packFrames(coroutine: Coroutine): PackedFrames {
  const obstacle = obstacleOf(coroutine)
  if (obstacle !== null) throw new Error(`the coroutine cannot move now: ${obstacle}`)
  const packed = new PackedFrames()
  packed.isSuspended = coroutine.state === 'suspended'
  packed.preemptionDepth = coroutine.preemptionDepth
  const frames: PackedFrame[] = []
  for (let frame = framesIn(coroutine); frame !== null; frame = frame.below) {
    const one = new PackedFrame()
    one.reenter = frame.reenter
    one.place = frame.place
    one.self = frame.self
    one.values = liveValues(frame)
    frames.push(one)
  }
  packed.frames = frames
  packed.searches = new Map(
    searchesAround(frames.map(({ reenter }) => reenter)).map(search => [search, search.lastIndex]),
  )
  return packed
}

/**
 * For debug mode: the variables and objects of the modules on the stack that have changed since these were
 * loaded. The task finds those of another CPU when it has moved.
 */
export function changesAround({ frames }: PackedFrames): string[] {
  return changedState(frames.map(({ reenter }) => reenter))
}

/** The values of a frame, without those that its code reads no more. */
function liveValues({ reenter, place, values }: SavedFrame): readonly unknown[] {
  const isLive = movableOf(reenter)?.isLive
  if (!isLive) return values
  return values.map((value, index) => (isLive(place, index) ? value : undefined))
}

/** A coroutine that continues with these frames. */
export function unpackFrames(packed: unknown): FunctionCoroutine {
  if (!(packed instanceof PackedFrames)) throw new ImageError('the image holds no frames of a task')
  restoreSearches(
    packed.frames.map(({ reenter }) => reenter),
    packed.searches,
  )
  const made = continued(
    packed.frames as { reenter: Reenter; place: number; self: unknown; values: unknown[] }[],
    packed.isSuspended,
  )
  made.preemptionDepth = packed.preemptionDepth
  return made
}
