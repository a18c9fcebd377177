/**
 * A hash of a text: 128 bits, as 32 hexadecimal digits. It is not cryptographic: a user who can write into
 * the cache can write code there anyway. Node's own hashes would cost each thread 20 ms, because they load
 * OpenSSL.
 */
export function textHash(text: string): string {
  let a = 0x9e3779b9
  let b = 0x243f6a88
  let c = 0xb7e15162
  let d = 0xdeadbeef
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    a = Math.imul(a ^ code, 0x85ebca6b)
    b = Math.imul(b ^ code, 0xc2b2ae35)
    c = Math.imul(c ^ code, 0x27d4eb2f) ^ (a >>> 15)
    d = Math.imul(d ^ code, 0x165667b1) ^ (b >>> 13)
    a ^= d >>> 16
    b ^= c >>> 17
  }
  a ^= text.length
  const words = [mix(a ^ c), mix(b ^ d), mix(a + d), mix(b + c)]
  return words.map(word => (word >>> 0).toString(16).padStart(8, '0')).join('')
}

/** Each bit of the input changes half of the output (murmur's last step). */
function mix(word: number): number {
  let mixed = Math.imul(word ^ (word >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return mixed ^ (mixed >>> 16)
}
