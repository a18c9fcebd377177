/**
 * Stands in for the modules that only Node can load, in a build for browsers: package.json maps `#node-host`,
 * `#node-thread` and `#node-control` to this file under the `browser` condition. It imports nothing, so no
 * build meets a module of Node's here.
 */
function refuse(): never {
  throw new Error(
    'heddle: this program was built for browsers and runs in Node; build it for Node, without the `browser` condition',
  )
}

/** Of kernel/boot/node-host.ts. */
export const loader: null = null
export const makeNodeMachine: () => never = refuse

/** Of machine/node/node-thread.ts: the schedule goes on with the clock. */
export const startNodeTimekeeper: () => undefined = () => undefined

/** Of trace/node-control.ts. */
export const listenForControl: () => undefined = () => undefined
