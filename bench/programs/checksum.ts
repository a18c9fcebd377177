'use task'

/** A table-driven CRC over blocks of bytes: loads, shifts, and a table built by a nested loop. */
export const size = 100
export const small = 1

function tableOf(polynomial: number): Int32Array {
  const table = new Int32Array(256)
  for (let n = 0; n < 256; n++) {
    let c = n
    for (let k = 0; k < 8; k++) c = c & 1 ? (c >>> 1) ^ polynomial : c >>> 1
    table[n] = c
  }
  return table
}

function update(crc: number, bytes: Uint8Array, table: Int32Array): number {
  let c = crc
  for (let i = 0; i < bytes.length; i++) c = table[(c ^ bytes[i]!) & 0xff]! ^ (c >>> 8)
  return c
}

export function run(blocks: number): number {
  const table = tableOf(0xedb88320)
  const bytes = new Uint8Array(20_000)
  for (let i = 0; i < bytes.length; i++) bytes[i] = i * 31
  let crc = -1
  for (let block = 0; block < blocks; block++) crc = update(crc, bytes, table)
  return ~crc >>> 0
}
