/**
 * Replaces the modules that only Node can load, in a build for browsers: package.json maps `#node-host`,
 * `#node-thread` and `#node-control` to this file under the `browser` condition. It imports nothing, so that
 * no build finds a module of Node here.
 */
function refuse(): never {
  throw new Error(
    'heddle: this program was built for browsers and runs in Node; build it for Node, without the `browser` condition',
  )
}

/** Replaces kernel/boot/node-host.ts. */
export const loader: null = null
export const makeNodeMachine: () => never = refuse

/** Replaces machine/node/node-thread.ts: the schedule uses the clock instead. */
export const startNodeTimekeeper: () => undefined = () => undefined

/** Replaces trace/node-control.ts. */
export const listenForControl: () => undefined = () => undefined
