/** Images that are changed on purpose. */

/** The image with another text of the same length wherever the first one is, and right checksums. */
export function renamed(image: Uint8Array, from: string, to: string): Uint8Array {
  if (from.length !== to.length) throw new Error(`${from} and ${to} have different lengths`)
  const copy = Buffer.from(image)
  let at = copy.indexOf(from, 0, 'latin1')
  if (at < 0) throw new Error(`the image does not contain ${from}`)
  for (; at >= 0; at = copy.indexOf(from, at + 1, 'latin1')) copy.write(to, at, 'latin1')
  return sealed(new Uint8Array(copy))
}

/** Corrects the checksums, as an attacker would. */
export function sealed(image: Uint8Array): Uint8Array {
  const i32 = new Int32Array(image.buffer)
  let first = 0x811c9dc5 | 0
  let second = 0x9e3779b9 | 0
  for (let at = 4; at < i32.length; at++) {
    first = Math.imul(first ^ i32[at], 0x01000193)
    first ^= first >>> 15
    second = (Math.imul(second, 0x85ebca6b) + i32[at]) | 0
    second ^= second >>> 13
  }
  i32[2] = first
  i32[3] = second
  return image
}
