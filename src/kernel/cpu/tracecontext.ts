/** W3C trace context: the two headers, as they travel. https://www.w3.org/TR/trace-context/ */
export interface TraceContext {
  /** `00-<trace id, 32 hex digits>-<parent id, 16 hex digits>-<flags, 2 hex digits>` */
  readonly traceparent: string
  readonly tracestate?: string
}

const version00 = /^00-([\da-f]{32})-([\da-f]{16})-[\da-f]{2}$/
/** A later version may have more fields after the flags: they are ignored. */
const later = /^(?!ff)[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-[\da-f]{2}(-.*)?$/

/** Returns the header if the standard allows it; else throws a TypeError. */
export function formatTraceparent(traceparent: unknown): string {
  const text = typeof traceparent === 'string' ? traceparent.trim() : ''
  const match = version00.exec(text) ?? (text.startsWith('00') ? null : later.exec(text))
  if (match === null || /^0+$/.test(match[1]) || /^0+$/.test(match[2])) {
    throw new TypeError(
      `traceparent: ${JSON.stringify(traceparent)} is not a W3C trace parent, as in 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`,
    )
  }
  return text
}
