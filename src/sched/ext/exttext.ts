import type { Arena, Region } from '../../arena/memory/arena.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** Writes text into a region as UTF-8, cut off where the region ends. Returns its bytes. */
export function writeText(arena: Arena, region: Region, text: string): number {
  // The encoder does not write to shared memory.
  const bytes = new Uint8Array(region.words * 4)
  const { written } = encoder.encodeInto(text, bytes)
  arena.u8.set(bytes.subarray(0, written), region.start * 4)
  return written
}

export function readText(arena: Arena, region: Region, bytes: number): string {
  return decoder.decode(arena.u8.slice(region.start * 4, region.start * 4 + bytes))
}
