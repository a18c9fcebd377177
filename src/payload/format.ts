/**
 * The wire format of a payload: 32-bit words, in the order in which a value is walked.
 *
 *   block      0        words of the structure, these two included
 *              1        how many published objects it names (their ids end the structure)
 *              2…       the structure; then, each on an even word, the bytes of large buffers
 *
 *   a word     …1       an integer of 31 bits, in the word itself
 *              …0       a tag in bits 1 to 6, and its argument in the 25 bits above: a length, a kind, an id.
 *                       An argument that does not fit is all ones, and stands in the next word
 *
 * A payload word (a record's word, or the result of `encode`) is one of
 *
 *   0          undefined
 *   > 0        the pointer of a block in the payload heap
 *   < 0        a small value in the word itself, without a block. Bits 0 to 2: its kind, 3 to 30: its number
 *
 * Sender and receiver number objects in the order of their first occurrence. `REFERENCE` names an object
 * again, so cycles and shared parts survive.
 */
export const HEADER_WORDS = 2
export const STRUCTURE_WORDS_AT = 0
export const PUBLISHED_COUNT_AT = 1

const TAG_BITS = 6
export const TAG_MASK: number = (1 << TAG_BITS) - 1
export const ARGUMENT_SHIFT: number = TAG_BITS + 1
export const ARGUMENT_LARGE = 0x1ff_ffff

export const INTEGER_MIN: number = -(2 ** 30)
export const INTEGER_MAX: number = 2 ** 30 - 1

export const UNDEFINED = 0
export const NULL = 1
export const TRUE = 2
export const FALSE = 3
/** Two words: the halves of a float64. */
export const NUMBER = 4
/** Length; then one byte a unit, all below 256. */
export const LATIN1 = 5
/** Length; then two bytes a unit. */
export const UTF16 = 6
/** 0 or 1 for the sign; then a string of hexadecimal digits. */
export const BIGINT = 7
/** Two words: 64 bits, signed. */
export const BIGINT64 = 8
export const REFERENCE = 9
/** Shape number; then the values in the order of its keys. */
export const OBJECT = 10
/** Key count; then the keys, then the values. It becomes the next shape. */
export const OBJECT_NEW_SHAPE = 11
/** As OBJECT_NEW_SHAPE, but not added to the shapes: an object with so many keys is probably the only one. */
export const OBJECT_DICTIONARY = 12
/** Stands for a value: the property was deleted while the object was read; or, in an array, a hole. */
export const ABSENT = 13
/** Length; then the elements. */
export const ARRAY = 14
/** Length; then one word for each element. */
export const ARRAY_INT32 = 15
/** Length; then, on an even word, one float64 for each element. */
export const ARRAY_FLOAT64 = 16
/**
 * Length, as a number; then the count of elements, then the index and value of each: for an array of mostly
 * holes.
 */
export const ARRAY_SPARSE = 17
/** Wraps an array: key count, the array, then the key and value of each. */
export const ARRAY_NAMED = 18
/** Entry count; then the key and value of each. */
export const MAP = 19
export const SET = 20
/** Two words: the time. */
export const DATE = 21
/** The source and the flags, as strings. */
export const REGEXP = 22
export const BOXED = 23
/** The built-in class (an index into `errorClasses`); then flags for the fields, and the fields. */
export const ERROR = 24
/**
 * The message, the name and the stack. Argument 1: then whether there is a cause, the cause, and the key and
 * value of each other property, as those of an error.
 */
export const DOM_EXCEPTION = 25
/** Byte length; then the bytes. */
export const BUFFER = 26
/** Byte length; then the position of the bytes, in words from the block's start. */
export const BUFFER_FAR = 27
/** Wraps BUFFER or BUFFER_FAR: the largest byte length, as a number. */
export const BUFFER_RESIZABLE = 28
/**
 * The view's class (an index into `viewClasses`); then offset and length as numbers (-1: the length follows
 * the buffer), and the buffer.
 */
export const VIEW = 29
/** As VIEW, for a view of its whole buffer. */
export const VIEW_WHOLE = 30
/** Id of a published object: a SharedArrayBuffer, or an object that only the platform can copy. */
export const PUBLISHED = 31
/** The registered name as a string; then the plain value of `toPlain`. */
export const TRAVELLING = 32

/*
 * The tags below occur only in an image: the value of `encodeImage`, which may contain code by name. An image
 * is IMAGE, then the position of its module table, in words from the start; then the value; then, for each
 * deferred object in order, its content; then the module table: a count, and the key and URL of each.
 *
 * A name of code is one word, the number of the name. A new number is followed by the number of the module,
 * the key and the hash.
 */
export const IMAGE = 33
/** A function, a class or a built-in object, found by its name of code. */
export const NAMED = 34
/**
 * A closure. The count of captured values, times four, plus 2 if it has the mark of functions that unwind,
 * plus 1 if it has properties of its own (deferred); then its name of code and the values.
 */
export const CLOSURE = 35
/** Part count; then the number of the kind, for a new number its name; then the parts. */
export const KIND = 36
/** The name of code of the class; then its properties, as an object. */
export const INSTANCE = 37
/** Property count; then for each its key, its flags, and the value, or the getter and the setter. */
export const OBJECT_EXACT = 38
export const OBJECT_WITHOUT_PROTOTYPE = 39
/**
 * Wraps an object. Bit 0: the name of code of its class comes first; bit 1: OBJECT_EXACT follows; bits 2 and
 * 3: it is not extensible (1), sealed (2) or frozen (3).
 */
export const EXTRA = 40
/** What to allocate (below), and for DEFERRED_INSTANCE and DEFERRED_KIND its class or kind. */
export const DEFERRED = 41
/**
 * The name of a well-known symbol, or the key of a registered one (argument 1), or the name of code of one
 * that a module holds (argument 2).
 */
export const SYMBOL = 42
/** The count of an `arguments` object; then its elements. */
export const ARGUMENTS = 43
/** Wraps REGEXP: its `lastIndex`. */
export const REGEXP_AT = 44

export const DEFERRED_OBJECT = 0
export const DEFERRED_ARRAY = 1
export const DEFERRED_MAP = 2
export const DEFERRED_SET = 3
export const DEFERRED_WITHOUT_PROTOTYPE = 4
export const DEFERRED_INSTANCE = 5
export const DEFERRED_KIND = 6
/**
 * An instance with private fields: the names of its class and of the class that declares these. Its content
 * ends with a count, and the name and the value of each.
 */
export const DEFERRED_PRIVATE = 7
/** An object whose prototype travels too: the content begins with it. */
export const DEFERRED_MADE = 8
/** And all numbers above: an error, whose class is the number minus this. */
export const DEFERRED_ERROR = 9

export const EXTRA_PROTOTYPE = 1
export const EXTRA_PROPERTIES = 2
export const EXTRA_INTEGRITY_SHIFT = 2

export const PROPERTY_WRITABLE = 1
export const PROPERTY_ENUMERABLE = 2
export const PROPERTY_CONFIGURABLE = 4
export const PROPERTY_ACCESSOR = 8

/** Kinds of an immediate word. */
export const IMMEDIATE_BITS = 3
export const IMMEDIATE_CONSTANT = 0
export const IMMEDIATE_INTEGER = 1
/** `[integer]`: the arguments of a function of one. */
export const IMMEDIATE_LIST = 2
/** `[integer, integer]`: 20 bits and 8. */
export const IMMEDIATE_PAIR = 3
/** `[integer, integer]`: 14 bits each. */
export const IMMEDIATE_EVEN_PAIR = 4
export const IMMEDIATE_MIN: number = -(2 ** 27)
export const IMMEDIATE_MAX: number = 2 ** 27 - 1
export const PAIR_SECOND_BITS = 8
export const EVEN_PAIR_SECOND_BITS = 14

export const CONSTANT_NULL = 0
export const CONSTANT_TRUE = 1
export const CONSTANT_FALSE = 2
export const CONSTANT_EMPTY_LIST = 3
export const CONSTANT_EMPTY_STRING = 4

/** Buffers up to this size are copied with the structure. Larger ones are copied directly into the block. */
export const NEAR_BYTES_MAX = 512

/** An object with more keys than this is written as a dictionary. */
export const SHAPE_KEYS_MAX = 64

export const ERROR_HAS_MESSAGE = 1
export const ERROR_HAS_STACK = 2
export const ERROR_HAS_CAUSE = 4
export const ERROR_HAS_ERRORS = 8
/** The `error` and the `suppressed` of a SuppressedError. */
export const ERROR_HAS_SUPPRESSED = 16

type ErrorClass = new (message?: string) => Error

/** By number on the wire. `AggregateError` is created with its list. */
export const errorClasses: readonly ErrorClass[] = [
  Error,
  EvalError,
  RangeError,
  ReferenceError,
  SyntaxError,
  TypeError,
  URIError,
  AggregateError as unknown as ErrorClass,
  // Missing on older platforms.
  (globalThis as unknown as { SuppressedError?: ErrorClass }).SuppressedError ?? Error,
]
export const AGGREGATE_ERROR = 7
export const SUPPRESSED_ERROR = 8

type ViewClass = new (buffer: ArrayBufferLike, offset?: number, length?: number) => ArrayBufferView

const viewNames = [
  'DataView',
  'Int8Array',
  'Uint8Array',
  'Uint8ClampedArray',
  'Int16Array',
  'Uint16Array',
  'Int32Array',
  'Uint32Array',
  'Float16Array',
  'Float32Array',
  'Float64Array',
  'BigInt64Array',
  'BigUint64Array',
] as const

/** By number on the wire. Float16Array is missing on older platforms. */
export const viewClasses: readonly (ViewClass | undefined)[] = viewNames.map(
  name => (globalThis as unknown as Record<string, ViewClass | undefined>)[name],
)

/** Numbers by class name. The platform gives the name: a view cannot claim another. */
export const viewNumbers: ReadonlyMap<string, number> = new Map(
  viewNames.map((name, number) => [name, number]),
)
