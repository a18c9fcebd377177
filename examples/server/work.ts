/** The computations of the server: plain functions that call libraries from npm. Neither uses heddle. */
import jpeg from 'jpeg-js'
import { marked } from 'marked'

export interface ResizeJob {
  readonly image: Uint8Array
  readonly width: number
}

/** Reduces a picture: each new pixel is the mean of the pixels that it replaces. */
export function resize({ image, width }: ResizeJob): Uint8Array {
  const from = jpeg.decode(image, { useTArray: true })
  const scale = from.width / width
  const height = Math.floor(from.height / scale)
  const data = new Uint8Array(width * height * 4)
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      for (let channel = 0; channel < 4; channel++) {
        let sum = 0
        let count = 0
        for (let fromY = Math.floor(y * scale); fromY < Math.floor((y + 1) * scale); fromY++) {
          for (let fromX = Math.floor(x * scale); fromX < Math.floor((x + 1) * scale); fromX++) {
            sum += from.data[(fromY * from.width + fromX) * 4 + channel]
            count++
          }
        }
        data[(y * width + x) * 4 + channel] = sum / count
      }
    }
  }
  return jpeg.encode({ width, height, data }, 80).data
}

export function markdown(text: string): string {
  return marked.parse(text) as string
}

export function ping(name: string): string {
  return `hello, ${name}`
}
