'use task'

/** Building and scanning strings. */
export const size = 40_000
export const small = 50

export function run(lines: number): number {
  let text = ''
  for (let i = 0; i < lines; i++) text += `${i};${(i * 7919) % 1000};${String.fromCharCode(97 + (i % 26))}\n`
  let hash = 0
  let fields = 0
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === 59) fields++
    hash = (Math.imul(hash, 31) + code) | 0
  }
  const words: string[] = []
  for (const line of text.split('\n')) {
    const end = line.lastIndexOf(';')
    if (end > 0) words.push(line.slice(end + 1).toUpperCase())
  }
  return hash + fields + words.join('').length
}
