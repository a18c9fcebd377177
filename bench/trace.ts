import { registerHooks } from 'node:module'
import { Arena, ArenaPlan } from '../src/arena/memory/arena.ts'
import { EventWriter, reserveEventRings, startRecording } from '../src/arena/rings/eventring.ts'
import { SWITCH } from '../src/arena/rings/events.ts'
import { compare, measure, type Row, timed } from './harness.ts'
import type { Yielders } from './sched/yielders.ts'

/**
 * The cost of tracing in the yield bench: with recording off, and with recording on. The baseline is the same
 * scheduler with the hooks removed from its source. Each of the three is a separate instance, so none profits
 * from the engine's type feedback of another.
 */
const HOOK = /^\s*if \((?:i32\[s\.recording\] !== 0|recording\b).*\brecord[A-Z]\w*\(.*\)$/gm

let hooksTaken = 0

registerHooks({
  resolve(specifier, context, next) {
    const found = next(specifier, context)
    const instance = /\?(bare|off|on)$/.exec(context.parentURL ?? '')?.[0]
    return instance !== undefined && specifier.startsWith('.')
      ? { ...found, url: found.url + instance }
      : found
  },
  load(url, context, next) {
    const loaded = next(url, context)
    if (!url.endsWith('?bare') || !url.includes('/src/sched/')) return loaded
    const source = String(loaded.source)
    hooksTaken += source.match(HOOK)?.length ?? 0
    return { ...loaded, source: source.replaceAll(HOOK, '') }
  },
})

type Instance = 'bare' | 'off' | 'on'

const TASKS = 1000
const EVENTS = 4096

async function yielders(instance: Instance): Promise<Yielders> {
  const { Rig } = (await import(`./sched/rig.ts?${instance}`)) as typeof import('./sched/rig.ts')
  const { Yielders } = (await import(
    `./sched/yielders.ts?${instance}`
  )) as typeof import('./sched/yielders.ts')
  const rig = new Rig(TASKS, instance === 'bare' ? 0 : EVENTS)
  if (instance === 'on') startRecording(rig.i32, rig.plan.events!)
  return new Yielders(rig, TASKS)
}

export async function* rows(): AsyncGenerator<Row> {
  const bare = await yielders('bare')
  if (hooksTaken < 8)
    throw new Error(`bench/trace: only ${hooksTaken} hooks found in src/sched: has their form changed?`)
  const off = await yielders('off')
  const on = await yielders('on')
  const against = 'the scheduler without tracing code'
  const base = () => bare.measure()
  yield await compare({
    row: 'trace/off',
    against,
    ours: () => off.measure(),
    base,
    rounds: 20,
    target: { most: 1.02 },
  })
  yield await compare({
    row: 'trace/on',
    against,
    ours: () => on.measure(),
    base,
    rounds: 12,
    target: { most: 1.5 },
  })
  yield await measure('trace/event', 'ns', oneEvent())
}

const WRITES = 1_000_000

/** The cost of one event, without the clock reading. */
function oneEvent(): () => number {
  const plan = new ArenaPlan()
  const rings = reserveEventRings(plan, 1, EVENTS)
  const arena = Arena.create(plan)
  startRecording(arena.i32, rings)
  const writer = new EventWriter(arena, rings, 0)
  return () =>
    timed(WRITES, turns => {
      for (let turn = 0; turn < turns; turn++) writer.write(SWITCH, 5.5, turn & 7, 1, 2, 3, 4)
    })
}
