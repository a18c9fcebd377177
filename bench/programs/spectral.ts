'use task'

/** Spectral norm: an inner loop that calls a small function. */
export const size = 250
export const small = 20

function element(i: number, j: number): number {
  return 1 / (((i + j) * (i + j + 1)) / 2 + i + 1)
}

function multiply(v: Float64Array, out: Float64Array): void {
  for (let i = 0; i < out.length; i++) {
    let sum = 0
    for (let j = 0; j < v.length; j++) sum += element(i, j) * v[j]!
    out[i] = sum
  }
}

function multiplyTransposed(v: Float64Array, out: Float64Array): void {
  for (let i = 0; i < out.length; i++) {
    let sum = 0
    for (let j = 0; j < v.length; j++) sum += element(j, i) * v[j]!
    out[i] = sum
  }
}

export function run(n: number): number {
  const u = new Float64Array(n).fill(1)
  const v = new Float64Array(n)
  const t = new Float64Array(n)
  for (let i = 0; i < 6; i++) {
    multiply(u, t)
    multiplyTransposed(t, v)
    multiply(v, t)
    multiplyTransposed(t, u)
  }
  let uv = 0
  let vv = 0
  for (let i = 0; i < n; i++) {
    uv += u[i]! * v[i]!
    vv += v[i]! * v[i]!
  }
  return Math.sqrt(uv / vv)
}
