/** Whether `Error.stackTraceLimit` can be set: after `node --frozen-intrinsics` it cannot. */
export const isStackLimitable: boolean =
  Object.getOwnPropertyDescriptor(Error, 'stackTraceLimit')?.writable === true
