'use task'

/**
 * Constructors that do all the work, as libraries of linear algebra have them: a matrix, and its
 * decomposition.
 */
export const size = 160
export const small = 6

class Grid {
  readonly rows: number
  readonly data: Float64Array

  constructor(rows: number, fill: (row: number, column: number) => number) {
    this.rows = rows
    this.data = new Float64Array(rows * rows)
    for (let i = 0; i < rows; i++) for (let j = 0; j < rows; j++) this.data[i * rows + j] = fill(i, j)
  }
}

class Copy extends Grid {
  constructor(from: Grid) {
    super(from.rows, (row, column) => from.data[row * from.rows + column]!)
  }
}

class Decomposition {
  readonly lu: Grid
  sign = 1

  constructor(from: Grid) {
    const lu = new Copy(from)
    const { data, rows } = lu
    for (let j = 0; j < rows; j++) {
      for (let i = 0; i < rows; i++) {
        let sum = 0
        const most = Math.min(i, j)
        for (let k = 0; k < most; k++) sum += data[i * rows + k]! * data[k * rows + j]!
        data[i * rows + j] = data[i * rows + j]! - sum
      }
      for (let i = j + 1; i < rows; i++) data[i * rows + j] = data[i * rows + j]! / data[j * rows + j]!
    }
    this.lu = lu
  }

  get determinant(): number {
    const { data, rows } = this.lu
    let product = this.sign
    for (let i = 0; i < rows; i++) product *= data[i * rows + i]!
    return product
  }
}

export function run(rows: number): number {
  const made = new Decomposition(
    new Grid(rows, (i, j) => (i === j ? 2 : 1 / (1 + ((i * 7 + j * 13) % 11)) / rows)),
  )
  return made.determinant
}
