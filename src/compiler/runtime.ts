/** The exports that compiled code imports. They are internal to the compiler, and may change with it. */
export { itself, needResched as poll, twin } from '../coroutine/core/coroutine.ts'
export { frames, look, lookInTime, rest, run, save, take } from '../coroutine/core/frames.ts'
export { resumable } from '../coroutine/core/generators.ts'
export {
  apply,
  applyOf,
  attach,
  attachAsync,
  attachEntry,
  attachGenerator,
  attachSelf,
  attachUnwinding,
  call,
  callable,
  getter,
  key,
  lend,
  linkClass,
  linkObject,
  own,
  refuse,
  setter,
  setTwinShape,
  taking,
  unwinding,
} from './runtime/attach.ts'
export { Await } from './runtime/async.ts'
export { get, isObject, set } from './runtime/accessors.ts'
export { AsyncLoop } from './runtime/asyncloop.ts'
export { binder } from './runtime/bind.ts'
export { Box, declared, declaring, early } from './runtime/box.ts'
export { moduleLoaded, movable, stamp } from './runtime/movable.ts'
export { give } from '../coroutine/core/give.ts'
export {
  born,
  installing,
  privateFields,
  staticFields,
  withoutPrivates,
} from '../coroutine/core/privatefields.ts'
export { cursorOf, iteratorOf, movableCursor, movableKeys } from './runtime/movablecursors.ts'
export {
  based,
  built,
  construct,
  derived,
  left,
  make,
  parentOf,
  permitParent,
  constructible,
  mayBuild,
  refuseNew,
  shielded,
  unwound,
} from './runtime/construct.ts'
export { cursor, KeyCursor } from './runtime/cursor.ts'
export {
  given,
  keyOf,
  nothing,
  other,
  other0,
  other1,
  other2,
  spreads,
  tagging,
  taggingBy,
  template,
  vouch,
} from './runtime/frames.ts'
export { listed, unpacked } from './runtime/notiterable.ts'
export { collect, delegate, iterate, Out, paused, stops, wait } from './runtime/generator.ts'
export { above, below, isShort, isShortList, limit, near } from './runtime/striplimits.ts'
import './runtime/builtins/twins.ts'
import './runtime/builtins/unwinding.ts'
export { eachOf } from './runtime/builtins/unwinding.ts'
