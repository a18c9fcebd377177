import type { TrackArgs, TrackKind, TrackSink } from '../../src/trace/tracks.ts'

/** One line of the JSON that ChromeWriter writes (src/trace/chrome.ts). */
interface Line {
  readonly ph: string
  readonly name?: string
  readonly tid: number
  readonly ts: number
  readonly id?: number
  readonly args?: Record<string, string | number>
}

/** Reads a trace file of ChromeWriter. The closing bracket may be missing: the file was cut off. */
export function readChrome(bytes: Uint8Array, sink: TrackSink): void {
  const lines = linesOf(new TextDecoder().decode(bytes))
  let last = 0
  for (let at = 0; at < lines.length; at++) {
    const { ph, name = '', tid, ts, args } = lines[at]
    const time = Math.round((ts ?? 0) * 1000)
    last = Math.max(last, time)
    if (ph === 'M') {
      if (name === 'thread_name') declare(sink, tid, String(args?.name ?? ''))
      continue
    }
    const starts: number[] = []
    const ends: number[] = []
    // The arrows of an event are the lines after it.
    for (
      let next = lines[at + 1];
      next !== undefined && (next.ph === 's' || next.ph === 'f');
      next = lines[++at + 1]
    ) {
      ;(next.ph === 's' ? starts : ends).push(next.id ?? 0)
    }
    const arrows = {
      ...(starts.length > 0 && { starts }),
      ...(ends.length > 0 && { ends }),
    }
    if (ph === 'B') sink.begin(tid, time, name, args as TrackArgs, arrows)
    else if (ph === 'E') sink.end(tid, time, args as TrackArgs)
    else if (ph === 'i' && name === 'events lost') sink.lost(time, Number(args?.count))
    else if (ph === 'i') sink.instant(tid, time, name, args as TrackArgs, arrows)
    else if (ph === 'C') sink.counter(tid, time, Number(args?.value))
  }
  sink.close(last)
}

function linesOf(text: string): Line[] {
  try {
    const whole = JSON.parse(text) as Line[] | { traceEvents: Line[] }
    return Array.isArray(whole) ? whole : whole.traceEvents
  } catch {
    const cut = text.slice(0, text.lastIndexOf('\n'))
    try {
      return JSON.parse(`${cut.replace(/,\s*$/, '')}]`) as Line[]
    } catch {
      throw new SyntaxError('not a trace: it is no JSON that heddle run --trace writes')
    }
  }
}

function declare(sink: TrackSink, id: number, name: string): void {
  const kind: TrackKind = /^CPU \d+$/.test(name)
    ? 'cpu'
    : /^(main thread|thread \d+)$/.test(name)
      ? 'thread'
      : 'task'
  sink.track({ id, kind, name, parent: 1 })
}
