const HEADER_WORDS = 4

/** Writes the checksums of an image that a test has changed (payload/imagebytes.ts), which begins at `at`. */
export function checksum(bytes: Uint8Array, at: number): void {
  const image = new Int32Array(bytes.slice(at).buffer)
  let first = 0x811c9dc5 | 0
  let second = 0x9e3779b9 | 0
  for (let word = HEADER_WORDS; word < image.length; word++) {
    first = Math.imul(first ^ image[word]!, 0x01000193)
    first ^= first >>> 15
    second = (Math.imul(second, 0x85ebca6b) + image[word]!) | 0
    second ^= second >>> 13
  }
  image[2] = first
  image[3] = second
  bytes.set(new Uint8Array(image.buffer), at)
}
