/**
 * An image as bytes, for another process or machine.
 *
 *   word 0   'hdl1': the format and its version
 *        1   the length in bytes, this header included
 *        2   two checksums of everything after the header
 *        3
 *        4…  a payload block (format.ts)
 *
 * Little-endian. The checksums find accidents, not attacks. A changed image with matching checksums is still
 * safe to read: the decoder checks every length and number, and finds code by name only.
 */
import { ImageDecoder, type ImageModule } from './imagedecode.ts'
import { ImageError } from './imagekinds.ts'
import { ImageEncoder } from './imageencode.ts'

const MAGIC = 0x316c6468
const HEADER_WORDS = 4
const isLittleEndian = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1

const noIds = {
  carries: () => true,
  idOf(): never {
    throw new Error('an image for another process has no published objects')
  },
}

const noObjects = {
  objectOf(): never {
    throw new ImageError('the image is damaged: it names memory of another process; use another copy of it')
  },
}

/**
 * Writes a value as bytes. `root` names it in error messages. Throws UntravelableError, and then has changed
 * nothing.
 */
export function imageToBytes(value: unknown, root: string): Uint8Array {
  if (!isLittleEndian) throw new ImageError('images need a little-endian machine')
  const encoder = new ImageEncoder(noIds, true)
  encoder.start(root)
  encoder.image(value)
  const words = encoder.finish()
  const i32 = new Int32Array(HEADER_WORDS + words)
  const bytes = new Uint8Array(i32.buffer)
  // Large buffers are aligned within the block, which starts on an even word.
  encoder.writer.copyTo(i32, bytes, HEADER_WORDS)
  i32[0] = MAGIC
  i32[1] = bytes.length
  const [first, second] = checksums(i32)
  i32[2] = first
  i32[3] = second
  return bytes
}

/** The modules that an image names: they must be loaded before `imageFromBytes`. */
export function modulesOfBytes(bytes: Uint8Array): readonly ImageModule[] {
  const buffer = checked(bytes)
  return guarded(() => new ImageDecoder(buffer, noObjects, true).modulesOf(HEADER_WORDS))
}

/** The value of an image. Throws ImageError if the bytes are no whole image. */
export function imageFromBytes(bytes: Uint8Array): unknown {
  const buffer = checked(bytes)
  return guarded(() => new ImageDecoder(buffer, noObjects, true).decode(HEADER_WORDS))
}

/** A copy of the bytes: the caller may change its own, and a block must be aligned. */
function checked(bytes: Uint8Array): ArrayBuffer {
  if (!(bytes instanceof Uint8Array)) throw new TypeError('an image is a Uint8Array')
  if (bytes.length < (HEADER_WORDS + 2) * 4 || bytes.length % 4 !== 0)
    throw new ImageError(`${bytes.length} bytes are no image; give the result of suspendToBytes whole`)
  // Not `slice`: that of a Buffer is a view.
  const i32 = new Int32Array(new Uint8Array(bytes).buffer)
  if ((i32[0] & 0xff_ffff) !== (MAGIC & 0xff_ffff))
    throw new ImageError('these bytes are no image: they do not begin as one')
  if (i32[0] !== MAGIC)
    throw new ImageError(
      `the image has version ${String.fromCharCode(i32[0] >>> 24)} and this heddle reads version 1; use the same version of heddle`,
    )
  if (i32[1] !== bytes.length)
    throw new ImageError(`the image has ${i32[1]} bytes, but ${bytes.length} arrived; give all of them`)
  const [first, second] = checksums(i32)
  if (i32[2] !== first || i32[3] !== second)
    throw new ImageError('the image is damaged: its checksum is wrong; use another copy of it')
  return i32.buffer as ArrayBuffer
}

/** Two sums over the words, each depending on their order. */
function checksums(i32: Int32Array): [number, number] {
  let first = 0x811c9dc5 | 0
  let second = 0x9e3779b9 | 0
  for (let at = HEADER_WORDS; at < i32.length; at++) {
    const word = i32[at]
    first = Math.imul(first ^ word, 0x01000193)
    first ^= first >>> 15
    second = (Math.imul(second, 0x85ebca6b) + word) | 0
    second ^= second >>> 13
  }
  return [first, second]
}

/** A damaged image may lead to any error of the platform: a length that no array has, a broken expression. */
function guarded<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (String((error as { code?: unknown }).code).startsWith('ERR_HEDDLE')) throw error
    throw new ImageError(`the image is damaged: ${(error as Error).message}; use another copy of it`, {
      cause: error,
    })
  }
}
