/** The work of the pool. */
export default async function twice(n: number): Promise<number> {
  if (n % 3 === 0) await new Promise(resolve => setTimeout(resolve, n % 5))
  return 2 * n
}
