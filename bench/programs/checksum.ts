'use task'

/** A table-driven CRC over bytes: loads, shifts, and a table built by a nested loop. */
export const size = 2_000_000

export function run(length: number): number {
  const table = new Int32Array(256)
  for (let n = 0; n < 256; n++) {
    let c = n
    for (let k = 0; k < 8; k++) c = c & 1 ? (c >>> 1) ^ 0xedb88320 : c >>> 1
    table[n] = c
  }
  const bytes = new Uint8Array(length)
  for (let i = 0; i < length; i++) bytes[i] = i * 31
  let crc = -1
  for (let i = 0; i < length; i++) crc = table[(crc ^ bytes[i]!) & 0xff]! ^ (crc >>> 8)
  return ~crc >>> 0
}
