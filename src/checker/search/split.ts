import { Awaits } from './awaits.ts'
import { conflict } from '../machine/eventlog.ts'
import type { Machine } from '../machine/machine.ts'
import { SPINNING } from '../machine/threadstates.ts'
import type { Setup } from '../machine/program.ts'
import type { Root } from './optimal.ts'
import type { Asleep } from './sleepsets.ts'

/**
 * Splits a search into about `wanted` parts, one for each way to begin. The threads that an earlier part
 * tries first at a point are asleep in the later parts, as in the search itself, so no two parts run the same
 * trace. A useless turn of a loop is not a way to begin (awaits.ts): `awaits` records the words on which that
 * relies.
 */
export function split(machine: Machine, setup: Setup, wanted: number, awaits: Awaits = new Awaits()): Root[] {
  machine.spin.stopsForGood = true
  let parts: Root[] = [{ prefix: [], asleep: [] }]
  for (let depth = 0; depth < DEPTH_MAX && parts.length < wanted; depth++) {
    const deeper = parts.flatMap(part => children(machine, setup, part, awaits))
    if (deeper.length === parts.length && deeper.every(({ prefix }) => prefix.length <= depth)) break
    parts = deeper
  }
  return parts
}

const DEPTH_MAX = 24

function children(machine: Machine, setup: Setup, part: Root, awaits: Awaits): Root[] {
  const goTo = (): void => {
    machine.begin(setup)
    for (const thread of part.prefix) machine.step(thread)
  }
  goTo()
  const { enabled } = machine
  // A part without enabled threads is a single execution.
  if (enabled === 0) return [part]
  const made: Root[] = []
  const tried: Asleep[] = []
  let moved = false
  for (let rest = enabled; rest !== 0; rest &= rest - 1) {
    const thread = 31 - Math.clz32(rest & -rest)
    if (part.asleep.some(sleeping => sleeping.thread === thread)) continue
    if (moved) goTo()
    moved = true
    machine.step(thread)
    if (machine.status[thread] === SPINNING && !machine.spin.rests(thread) && awaits.leaveOut(machine))
      continue
    const { log } = machine
    const at = log.length - 1
    const event: Asleep = {
      thread,
      from: log.from[at],
      to: log.to[at],
      from2: log.from2[at],
      to2: log.to2[at],
      flags: log.flags[at],
    }
    const asleep = [...part.asleep, ...tried].filter(
      a =>
        !conflict(
          a.from,
          a.to,
          a.from2,
          a.to2,
          a.flags,
          event.from,
          event.to,
          event.from2,
          event.to2,
          event.flags,
        ),
    )
    made.push({ prefix: [...part.prefix, thread], asleep })
    tried.push(event)
  }
  // All threads wait and none can go on: this is also an end.
  return made.length === 0 && part.asleep.length === 0 ? [part] : made
}
