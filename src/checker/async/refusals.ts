import { CheckError } from '../errors.ts'
import type { Execution } from './execution.ts'
import { here, written } from './place.ts'
import type { Replacements } from './replacements.ts'

/** The error for a use of the real world, which the schedule of a check does not control. */
function uncontrolled(execution: Execution, what: string, instead: string): CheckError {
  const where = `in ${execution.nameOf(execution.task)}, ${written(here())}`
  return execution.refuse(
    new CheckError('ERR_CHECK_UNCONTROLLED', `${what}, ${where}: a check does not control it. ${instead}`),
  )
}

const GIVE = 'Give the program something in its place that answers with `io`'

/** A description of each real resource of Node. */
const RESOURCES: Readonly<Record<string, string>> = {
  Timeout: 'a real timer was started, by a function that was taken from its module before the check',
  Immediate: 'a real immediate was set, by a function that was taken from its module before the check',
  FSREQCALLBACK: 'a real file was used',
  FSREQPROMISE: 'a real file was used, or a module was loaded',
  FILEHANDLE: 'a real file was used',
  TCPWRAP: 'a real connection was made',
  TCPCONNECTWRAP: 'a real connection was made',
  TLSWRAP: 'a real connection was made',
  TCPSERVERWRAP: 'a real server was opened',
  PIPESERVERWRAP: 'a real server was opened',
  PIPEWRAP: 'a real connection was made',
  UDPWRAP: 'a real socket was opened',
  GETADDRINFOREQWRAP: 'a real host name was looked up',
  MESSAGEPORT: 'a real MessagePort was made; take `MessageChannel` from the global object',
  WORKER: 'a real worker was started',
  PROCESSWRAP: 'a real process was started',
}

export function refuseResource(execution: Execution, type: string): void {
  if (execution.refusal !== undefined) return
  uncontrolled(execution, RESOURCES[type] ?? `something real was begun (${type})`, GIVE)
}

/**
 * Replaces functions that would bring randomness or the real world into an execution, and that Node's hooks
 * do not report.
 */
export function refuseFunctions(
  replacements: Replacements,
  running: () => Execution,
  random: readonly number[] | undefined,
): void {
  const refuse = (owner: unknown, name: string, what: string, instead: string): void => {
    replacements.add(owner, name, () => {
      throw uncontrolled(running(), what, instead)
    })
  }
  const chance = 'Say which values to try: `{ random: [0, 0.5] }`, or `choose` in the set-up'
  if (random === undefined) refuse(Math, 'random', 'Math.random() was called', chance)
  else {
    replacements.add(Math, 'random', () =>
      random.length === 1 ? random[0] : random[running().choose(random.length, 'Math.random()')],
    )
  }
  const crypto = process.getBuiltinModule('node:crypto')
  const bytes = 'Give the program a fixed value, or one of `choose`'
  for (const name of [
    'randomBytes',
    'randomFillSync',
    'randomFill',
    'randomInt',
    'getRandomValues',
    'pseudoRandomBytes',
  ]) {
    refuse(crypto, name, `crypto.${name}() was called`, bytes)
  }
  for (const owner of new Set([globalThis.crypto, crypto.webcrypto]))
    refuse(owner, 'getRandomValues', 'crypto.getRandomValues() was called', bytes)
  // Ids only have to be different.
  let ids = 0
  let of: Execution | undefined
  const uuid = (): string => {
    if (of !== running()) ids = 0
    of = running()
    return `00000000-0000-4000-8000-${String(ids++).padStart(12, '0')}`
  }
  for (const owner of new Set<unknown>([globalThis.crypto, crypto.webcrypto, crypto]))
    replacements.add(owner, 'randomUUID', uuid)
  const held = globalThis as unknown as Record<string, unknown>
  refuse(held, 'fetch', 'fetch() was called', 'Give the program a `fetch` that answers with `io`')
  refuse(Atomics, 'waitAsync', 'Atomics.waitAsync() was called', 'Code over shared memory belongs in `check`')
  refuse(Atomics, 'wait', 'Atomics.wait() was called', 'Code over shared memory belongs in `check`')
  for (const name of ['compile', 'instantiate', 'compileStreaming', 'instantiateStreaming']) {
    refuse(
      held['WebAssembly'],
      name,
      `WebAssembly.${name}() was called`,
      'Compile it before the check, or with `new WebAssembly.Module()`',
    )
  }
  refuse(
    FinalizationRegistry.prototype,
    'register',
    'a FinalizationRegistry was used',
    'When memory is collected is chance; give the program a registry that does nothing',
  )
  const { deref } = WeakRef.prototype
  replacements.add(WeakRef.prototype, 'deref', function (this: WeakRef<object>) {
    running().notes.add('a WeakRef was read: only that what it refers to is still there was tried')
    return Reflect.apply(deref, this, []) as unknown
  })
  const temporal = (held['Temporal'] as { Now?: object } | undefined)?.Now
  if (temporal !== undefined) {
    for (const name of Object.getOwnPropertyNames(temporal))
      refuse(temporal, name, `Temporal.Now.${name}() was called`, 'Read `Date.now()`, which is virtual')
  }
  const fs = process.getBuiltinModule('node:fs') as unknown as Record<string, unknown>
  for (const name of Object.keys(fs)) {
    if (CHANGES_FILES.test(name))
      refuse(
        fs,
        name,
        `fs.${name}() was called`,
        'What it leaves behind stays for the next execution; give the program a fake',
      )
  }
  const child = process.getBuiltinModule('node:child_process')
  for (const name of ['execSync', 'execFileSync', 'spawnSync'])
    refuse(child, name, `${name}() was called`, GIVE)
}

const CHANGES_FILES =
  /^(?:append|chmod|chown|copyFile|cp|fchmod|fchown|ftruncate|link|mkdir|mkdtemp|open|rename|rm|rmdir|symlink|truncate|unlink|utimes|write|writev|writeFile)(?:File|Disposable)?Sync$/
