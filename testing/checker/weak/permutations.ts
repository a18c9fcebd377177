const known: number[][][] = [[[]]]

/** All permutations of the numbers less than `size`. */
export function permutations(size: number): readonly (readonly number[])[] {
  known[size] ??= permutations(size - 1).flatMap(order =>
    Array.from({ length: size }, (_, at) => [...order.slice(0, at), size - 1, ...order.slice(at)]),
  )
  return known[size]
}
