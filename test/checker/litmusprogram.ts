import type { Program } from '../../src/checker/check.ts'

const places: Record<string, number> = { x: 0, y: 1, z: 2 }

interface Op {
  readonly place: number
  readonly atomic: boolean
  /** Undefined: it reads. */
  readonly value: number | undefined
}

function parse(text: string): Op[] {
  return text
    .trim()
    .split(/\s+/)
    .filter(word => word !== '')
    .map(word => {
      const [, left = '', assign, right = ''] = /^(\w+)(:?=)(\w+)$/.exec(word)!
      const reads = right in places
      return {
        place: places[reads ? right : left]!,
        atomic: assign === ':=',
        value: reads ? undefined : Number(right),
      }
    })
}

/** `x=1 y=1 | r=y s=x ; x` */
export function program(text: string): () => Program {
  const [threads, last = ''] = text.split(';')
  const finals = last
    .trim()
    .split(/\s+/)
    .filter(word => word !== '')
    .map(word => places[word]!)
  return () => {
    const memory = new Int32Array(new SharedArrayBuffer(12))
    return {
      threads: threads!.split('|').map(part => {
        const ops = parse(part)
        return () => {
          const seen: number[] = []
          for (const { place, atomic, value } of ops) {
            if (value === undefined) seen.push(atomic ? Atomics.load(memory, place) : memory[place]!)
            else if (atomic) Atomics.store(memory, place, value)
            else memory[place] = value
          }
          return seen
        }
      }),
      final: ({ results }) => {
        const read: number[] = []
        for (const place of finals) read.push(memory[place]!)
        return [...(results as number[][]).flat(), ...read].join('')
      },
    }
  }
}
