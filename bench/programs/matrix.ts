'use task'

/** Matrix multiply on typed arrays. */
export const size = 80
export const small = 8

function multiply(a: Float64Array, b: Float64Array, c: Float64Array, n: number): void {
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < n; j++) {
      let sum = 0
      for (let k = 0; k < n; k++) sum += a[i * n + k]! * b[k * n + j]!
      c[i * n + j] = sum
    }
  }
}

export function run(n: number): number {
  const a = new Float64Array(n * n)
  const b = new Float64Array(n * n)
  const c = new Float64Array(n * n)
  for (let i = 0; i < n * n; i++) {
    a[i] = (i % 17) / 17
    b[i] = (i % 13) / 13
  }
  let trace = 0
  for (let round = 0; round < 12; round++) {
    multiply(a, b, c, n)
    for (let i = 0; i < n; i++) trace += c[i * n + i]!
  }
  return trace
}
