import {
  CONSTANT_EMPTY_LIST,
  CONSTANT_EMPTY_STRING,
  CONSTANT_FALSE,
  CONSTANT_NULL,
  CONSTANT_TRUE,
  EVEN_PAIR_SECOND_BITS,
  IMMEDIATE_BITS,
  IMMEDIATE_CONSTANT,
  IMMEDIATE_EVEN_PAIR,
  IMMEDIATE_INTEGER,
  IMMEDIATE_LIST,
  IMMEDIATE_MAX,
  IMMEDIATE_MIN,
  IMMEDIATE_PAIR,
  PAIR_SECOND_BITS,
} from './format.ts'

const KIND_MASK = (1 << IMMEDIATE_BITS) - 1
const NUMBER_BITS = 28

/**
 * Returns the immediate word of a value, always negative; 0 when the value needs a block. (The caller handles
 * undefined, whose word is 0 too.)
 */
export function immediateOf(value: unknown): number {
  switch (typeof value) {
    case 'number':
      return isSmall(value, IMMEDIATE_MIN, IMMEDIATE_MAX) ? pack(IMMEDIATE_INTEGER, value) : 0
    case 'boolean':
      return pack(IMMEDIATE_CONSTANT, value ? CONSTANT_TRUE : CONSTANT_FALSE)
    case 'string':
      return value === '' ? pack(IMMEDIATE_CONSTANT, CONSTANT_EMPTY_STRING) : 0
    case 'object':
      return value === null ? pack(IMMEDIATE_CONSTANT, CONSTANT_NULL) : 0
    default:
      return 0
  }
}

/** As `immediateOf`, for the arguments of a call. */
export function immediateOfList(list: readonly unknown[]): number {
  if (list.length === 0) return pack(IMMEDIATE_CONSTANT, CONSTANT_EMPTY_LIST)
  const first = list[0]
  if (list.length === 1) {
    return typeof first === 'number' && isSmall(first, IMMEDIATE_MIN, IMMEDIATE_MAX)
      ? pack(IMMEDIATE_LIST, first)
      : 0
  }
  if (list.length !== 2) return 0
  const second = list[1]
  if (typeof first !== 'number' || typeof second !== 'number') return 0
  return (
    packPair(IMMEDIATE_PAIR, first, second, PAIR_SECOND_BITS) ||
    packPair(IMMEDIATE_EVEN_PAIR, first, second, EVEN_PAIR_SECOND_BITS)
  )
}

export function readImmediate(word: number): unknown {
  const number = (word << 1) >> (IMMEDIATE_BITS + 1)
  switch (word & KIND_MASK) {
    case IMMEDIATE_INTEGER:
      return number
    case IMMEDIATE_LIST:
      return [number]
    case IMMEDIATE_PAIR:
      return pair(number, PAIR_SECOND_BITS)
    case IMMEDIATE_EVEN_PAIR:
      return pair(number, EVEN_PAIR_SECOND_BITS)
    default:
      return constant(number)
  }
}

function constant(number: number): unknown {
  switch (number) {
    case CONSTANT_NULL:
      return null
    case CONSTANT_TRUE:
      return true
    case CONSTANT_FALSE:
      return false
    case CONSTANT_EMPTY_LIST:
      return []
    case CONSTANT_EMPTY_STRING:
      return ''
    default:
      throw new Error(
        `${number} is not a constant of a payload word: the payload is damaged; report this as a defect of heddle`,
      )
  }
}

/** Packs two integers into one word; 0 when one of them does not fit. */
function packPair(kind: number, first: number, second: number, secondBits: number): number {
  const firstLimit = 1 << (NUMBER_BITS - secondBits - 1)
  const secondLimit = 1 << (secondBits - 1)
  if (!isSmall(first, -firstLimit, firstLimit - 1) || !isSmall(second, -secondLimit, secondLimit - 1))
    return 0
  return pack(kind, (first << secondBits) | (second & ((1 << secondBits) - 1)))
}

function pair(number: number, secondBits: number): [number, number] {
  return [number >> secondBits, (number << (32 - secondBits)) >> (32 - secondBits)]
}

function pack(kind: number, number: number): number {
  return (1 << 31) | ((number << (IMMEDIATE_BITS + 1)) >>> 1) | kind
}

function isSmall(value: number, min: number, max: number): boolean {
  return (value | 0) === value && value >= min && value <= max && (value !== 0 || !Object.is(value, -0))
}
