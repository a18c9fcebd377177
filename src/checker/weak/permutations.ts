const known: number[][][] = [[[]]]

/** All orders of the numbers below `size`. */
export function permutations(size: number): readonly (readonly number[])[] {
  known[size] ??= permutations(size - 1).flatMap(order =>
    Array.from({ length: size }, (_, at) => [...order.slice(0, at), size - 1, ...order.slice(at)]),
  )
  return known[size]
}
