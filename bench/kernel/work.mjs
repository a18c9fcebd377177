/** The same work for piscina and tinypool, which call an exported function with one argument. */
export const add = ({ a, b }) => a + b
export const touch = bytes => bytes[0] + bytes[bytes.length - 1]
export const when = () => performance.timeOrigin + performance.now()
export function hog(ms) {
  const end = performance.now() + ms
  let turns = 0
  while (performance.now() < end) turns++
  return turns
}
