import { promisify } from 'node:util'
import { deflateRaw, inflateRaw } from 'node:zlib'
import { ImageError } from '../payload/imagekinds.ts'
import { ImageTooLargeError } from './errors.ts'

/**
 * A stored image: byte 0 is the version, 1; the rest is the image of a suspended task, compressed. Level 1:
 * the state of a task is mostly numbers and texts, and a higher level takes several times as long for a
 * tenth.
 */
const VERSION = 1
const LEVEL = 1

export const FROM_START =
  "begin the run again: run.retry({ from: 'start' }), or heddle runs retry <id> --from start"

const deflate = promisify(deflateRaw)
const inflate = promisify(inflateRaw)

/** An image that a database returns may have been changed: it is not unpacked beyond this. */
const RAW_BYTES_MAX = 2 ** 31 - 1

export async function packImage(run: string, image: Uint8Array, limit: number): Promise<Uint8Array> {
  const packed = await deflate(image, { level: LEVEL })
  if (packed.length + 1 > limit) throw new ImageTooLargeError(run, packed.length + 1, limit)
  const stored = new Uint8Array(packed.length + 1)
  stored[0] = VERSION
  stored.set(packed, 1)
  return stored
}

/** Throws ImageError if the bytes are no stored image. `rawBytes`: the size before, by the row of the run. */
export async function unpackImage(stored: Uint8Array, rawBytes: number | null): Promise<Uint8Array> {
  if (stored[0] !== VERSION)
    throw new ImageError(
      `the stored image has version ${stored[0]}, and this heddle reads version ${VERSION}; use the version of heddle that wrote it`,
    )
  try {
    return new Uint8Array(
      await inflate(stored.subarray(1), { maxOutputLength: rawBytes === null ? RAW_BYTES_MAX : rawBytes }),
    )
  } catch (error) {
    throw new ImageError(`the stored image is damaged; ${FROM_START}`, { cause: error })
  }
}
