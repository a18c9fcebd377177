import { POLICY_LOADED } from '../../arena/rings/events.ts'
import { recordPolicy } from '../core/events.ts'
import { Entity } from '../core/entity.ts'
import { drainEjected, eject, tellCpus } from './eject.ts'
import {
  ACTIVE,
  ExtRecord,
  extStateNames,
  LOADING,
  NONE,
  ownState,
  stateIn,
  TAKES_ALL,
  TAKES_LISTED,
  TAKES_NONE,
} from './extlayout.ts'
import { readText, writeText } from './exttext.ts'
import { EXT_MAJOR_PRIORITY, EXT_PRIORITY, FAIR_MAJOR_PRIORITY, FAIR_PRIORITY } from '../core/priority.ts'
import type { Scheduler } from '../core/scheduler.ts'
import { setPriority, setPriorityFrom } from '../core/setpriority.ts'

/**
 * Loading and unloading, from any thread, while tasks run. Loading only writes down that there is a policy,
 * and where it is: each CPU fetches and enables it by itself, and calls it from then on; also CPUs that start
 * later. Then the policy gets tasks.
 */
export interface PolicyToLoad {
  readonly name: string
  /** The module that CPUs import; not needed where the policy is fetched in another way. */
  readonly href?: string
}

/** Writes down a policy to load. Throws if one is loaded already. */
export function loadPolicy(s: Scheduler, { name, href = '' }: PolicyToLoad): void {
  const { i32, ext } = s
  const { record, plan } = ext
  const was = Atomics.compareExchange(i32, record + ExtRecord.state, NONE, ownState(LOADING, s.thread))
  if (was !== NONE) {
    throw new Error(
      `loadPolicy('${name}'): a policy is loaded already (${extStateNames[stateIn(was)]}); unload it first`,
    )
  }
  i32.fill(0, plan.words.start, plan.words.start + plan.words.words)
  i32[record + ExtRecord.reason] = 0
  i32[record + ExtRecord.reportBytes] = 0
  i32[record + ExtRecord.nameBytes] = writeText(s.arena, plan.name, name)
  i32[record + ExtRecord.hrefBytes] = writeText(s.arena, plan.href, href)
  Atomics.store(i32, record + ExtRecord.state, ACTIVE)
  // Last: a CPU that reads the new number finds everything else written.
  Atomics.add(i32, record + ExtRecord.generation, 1)
  if (i32[s.recording] !== 0) recordPolicy(s, POLICY_LOADED, 0)
  tellCpus(s)
}

/** The module to import the policy from. */
export function policyHref(s: Scheduler): string {
  return readText(s.arena, s.ext.plan.href, s.i32[s.ext.record + ExtRecord.hrefBytes])
}

/**
 * Ends the policy. Its tasks are in the fair class when this returns; CPUs forget it at their next switch.
 */
export function unloadPolicy(s: Scheduler): boolean {
  const asked = eject(s, 'unloaded', 'unloaded', 0, -1)
  drainEjected(s)
  return asked
}

/** Whether this CPU has enabled the policy. */
export function hasPolicy(s: Scheduler, cpu: number): boolean {
  const at = s.ext.record + ExtRecord.enabled + (cpu >> 5)
  return ((Atomics.load(s.i32, at) >>> (cpu & 31)) & 1) !== 0
}

/** The policy gets all ordinary tasks from now on, new ones too. */
export function takeAllTasks(s: Scheduler): void {
  const { i32, entities } = s
  takeFromNowOn(s, TAKES_ALL)
  const guest = s.cpu < 0
  if (guest) s.rcu.idleExit(s.thread)
  for (let se = entities.after(i32, 0); se !== 0; se = entities.after(i32, se)) {
    if (entities.isPublished(i32, se)) joinPolicy(s, i32[se + Entity.task])
  }
  if (guest) s.rcu.idleEnter(s.thread)
}

function takeFromNowOn({ i32, ext }: Scheduler, which: number): void {
  Atomics.store(i32, ext.record + ExtRecord.takes, which)
  if (!ext.isActive()) Atomics.store(i32, ext.record + ExtRecord.takes, TAKES_NONE)
}

/**
 * The policy gets new tasks that the allowlist names from now on. `list` is text of at most ALLOWLIST_BYTES
 * that an upper layer reads.
 */
export function takeListedTasks(s: Scheduler, list: string): void {
  const { i32, ext, arena } = s
  i32[ext.record + ExtRecord.listBytes] = writeText(arena, ext.plan.list, list)
  takeFromNowOn(s, TAKES_LISTED)
}

/** The text of the allowlist, or null: no allowlist is in force. */
export function listedTasks({ i32, ext, arena }: Scheduler): string | null {
  if (Atomics.load(i32, ext.record + ExtRecord.takes) !== TAKES_LISTED) return null
  return readText(arena, ext.plan.list, i32[ext.record + ExtRecord.listBytes])
}

/** Gives one task to the policy. False: no policy is loaded, and the task stays an ordinary one. */
export function allowTask(s: Scheduler, task: number): boolean {
  setPriority(s, task, EXT_PRIORITY)
  return staysIfActive(s, task)
}

/** Takes one task away from the policy. */
export function disallowTask(s: Scheduler, task: number): void {
  setPriorityFrom(s, task, EXT_MAJOR_PRIORITY, FAIR_PRIORITY)
}

/** An ordinary task joins the policy that takes all of them. */
export function joinPolicy(s: Scheduler, task: number): void {
  if (Atomics.load(s.i32, s.ext.record + ExtRecord.takes) === TAKES_ALL) moveToPolicy(s, task)
}

/** An ordinary task joins the policy because the allowlist names it. */
export function joinAsListed(s: Scheduler, task: number): void {
  if (Atomics.load(s.i32, s.ext.record + ExtRecord.takes) === TAKES_LISTED) moveToPolicy(s, task)
}

function moveToPolicy(s: Scheduler, task: number): void {
  if (setPriorityFrom(s, task, FAIR_MAJOR_PRIORITY, EXT_PRIORITY)) staysIfActive(s, task)
}

/** A task that joined after (C) of eject.ts moves back here. */
function staysIfActive(s: Scheduler, task: number): boolean {
  if (s.ext.isActive()) return true
  setPriorityFrom(s, task, EXT_MAJOR_PRIORITY, FAIR_PRIORITY)
  return false
}

/** CPUs that start from now on wait, before they run anything. */
export function holdCpus(s: Scheduler): void {
  Atomics.store(s.i32, s.ext.record + ExtRecord.hold, 1)
}

/** Whether CPUs that start are held. */
export function areHeld(s: Scheduler): boolean {
  return Atomics.load(s.i32, s.ext.record + ExtRecord.hold) !== 0
}

/** Releases the CPUs that are held. */
export function continueCpus(s: Scheduler): void {
  Atomics.store(s.i32, s.ext.record + ExtRecord.hold, 0)
  tellCpus(s)
}
