'use task'

/** A tight floating-point loop: points of the Mandelbrot set on a line. */
export const size = 400
export const small = 10

export function run(points: number): number {
  let inside = 0
  for (let p = 0; p < points; p++) {
    const cr = -2 + (3 * p) / points
    const ci = 0.1
    let zr = 0
    let zi = 0
    let n = 0
    for (; n < 10_000 && zr * zr + zi * zi < 4; n++) {
      const t = zr * zr - zi * zi + cr
      zi = 2 * zr * zi + ci
      zr = t
    }
    if (n === 10_000) inside++
  }
  return inside
}
