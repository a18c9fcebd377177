/**
 * The hooks for `module.register`, which run in a separate thread: for Node versions without registerHooks.
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

/** The data that the registering thread passes to the hooks. */
export interface HooksData {
  readonly patterns: readonly string[]
  /** Receives later selections. */
  readonly port: MessagePort
  readonly claims: SharedArrayBuffer
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

/** CommonJS is left to Module.prototype._compile, which also handles `require`. */
export const load: LoadHook = async (url, context, nextLoad) => {
  for (let more = received(); more !== undefined; more = received()) selection.add(more)
  let loaded: Awaited<ReturnType<typeof nextLoad>>
  try {
    loaded = await nextLoad(url, context)
  } catch (error) {
    if (nodeStrips || !isUnknownTypeScript(url, error)) throw error
    return { shortCircuit: true, ...loadTypeScript(url) } as never
  }
  // Node reads CommonJS itself. But text that another hook made of it (tsx) does not pass
  // Module.prototype._compile.
  const isLeft = loaded.format === 'commonjs' || loaded.format === 'commonjs-typescript'
  return isLeft && (loaded.source === null || loaded.source === undefined)
    ? loaded
    : compileLoaded(url, loaded)
}

function received(): readonly string[] | undefined {
  return port === undefined ? undefined : receiveMessageOnPort(port)?.message
}

/** True if no earlier loader knows the extension. */
function isUnknownTypeScript(url: string, error: unknown): boolean {
  return (
    /^file:.*\.[cm]?ts(?:[?#]|$)/.test(url) &&
    (error as NodeJS.ErrnoException | undefined)?.code === 'ERR_UNKNOWN_FILE_EXTENSION'
  )
}
