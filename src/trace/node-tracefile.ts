import { closeSync, openSync, writeSync } from 'node:fs'
import { ChromeWriter } from './chrome.ts'
import { PerfettoWriter } from './perfetto.ts'
import type { TrackSink } from './tracks.ts'

/**
 * A sink that writes a trace file: JSON for the DevTools if the name ends in .json, else Perfetto's format.
 */
export function traceFile(path: string): TrackSink {
  const file = openSync(path, 'w')
  const options = { pid: process.pid }
  const sink: TrackSink = path.endsWith('.json')
    ? new ChromeWriter(text => void writeSync(file, text), options)
    : new PerfettoWriter(bytes => void writeSync(file, bytes), options)
  const close = sink.close.bind(sink)
  sink.close = time => {
    close(time)
    closeSync(file)
  }
  return sink
}
