'use task'

/** Backtracking: recursion with a loop in every frame. */
export const size = 10
export const small = 5

function place(row: number, n: number, columns: number, up: number, down: number): number {
  if (row === n) return 1
  let solutions = 0
  for (let column = 0; column < n; column++) {
    const bit = 1 << column
    if (columns & bit || up & (1 << (row + column)) || down & (1 << (row - column + n))) continue
    solutions += place(
      row + 1,
      n,
      columns | bit,
      up | (1 << (row + column)),
      down | (1 << (row - column + n)),
    )
  }
  return solutions
}

export function run(n: number): number {
  return place(0, n, 0, 0, 0)
}
