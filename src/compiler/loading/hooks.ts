/**
 * The hooks for `module.register`, which runs them in a thread of their own: for a Node that has no
 * registerHooks.
 */
import type { InitializeHook, LoadHook } from 'node:module'
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import { tellProgram } from '../../machine/node/node-claims.ts'
import {
  compileLoaded,
  loadTypeScript,
  nodeStrips,
  selection,
  setClaimsMemory,
  withoutRuntime,
} from './loader.ts'

/** What the thread that registers the hooks gives them. */
export interface HooksData {
  readonly patterns: readonly string[]
  /** Brings what is selected later. */
  readonly port: MessagePort
  readonly claims: SharedArrayBuffer
  /** The file of the program. */
  readonly program: string | undefined
}

let port: MessagePort | undefined

export const initialize: InitializeHook<HooksData> = ({ patterns, port: given, claims, program }) => {
  withoutRuntime()
  setClaimsMemory(claims)
  tellProgram(program)
  selection.add(patterns)
  port = given
}

/** CommonJS is left to Module.prototype._compile, which sees what `require` loads as well. */
export const load: LoadHook = async (url, context, nextLoad) => {
  for (let more = received(); more !== undefined; more = received()) selection.add(more)
  let loaded: Awaited<ReturnType<typeof nextLoad>>
  try {
    loaded = await nextLoad(url, context)
  } catch (error) {
    if (nodeStrips || !isUnknownTypeScript(url, error)) throw error
    return { shortCircuit: true, ...loadTypeScript(url) } as never
  }
  // Node reads CommonJS itself; a text that another hook has made of it (tsx) does not come by
  // Module.prototype._compile.
  const isLeft = loaded.format === 'commonjs' || loaded.format === 'commonjs-typescript'
  return isLeft && (loaded.source === null || loaded.source === undefined)
    ? loaded
    : compileLoaded(url, loaded)
}

function received(): readonly string[] | undefined {
  return port === undefined ? undefined : receiveMessageOnPort(port)?.message
}

/** No loader before us knows the ending either. */
function isUnknownTypeScript(url: string, error: unknown): boolean {
  return (
    /^file:.*\.[cm]?ts(?:[?#]|$)/.test(url) &&
    (error as NodeJS.ErrnoException | undefined)?.code === 'ERR_UNKNOWN_FILE_EXTENSION'
  )
}
