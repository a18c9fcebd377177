import { CheckError } from './errors.ts'

/**
 * Shared memory as the explorer sees it: every buffer of a check lies in one line of addresses, and a cell is a
 * granule of that line. Two accesses conflict when they share a cell, so the granule must divide every access: it
 * starts at eight bytes, and `BeginAgain` says that the search must begin again with a smaller one.
 *
 * Behind the bytes of a buffer lies as long a stretch that stands for its waiter lists: the list of an address
 * is a cell of its own, in conflict with other operations on that list alone.
 */
export class Memory {
  readonly shift: number
  /** Cells handed out so far. */
  cells: number = 1

  /**
   * Cells whose accesses do not all have one range. Which way a compare-exchange there would have gone in another order
   * cannot be told from the values before and after single events, so it always counts as a write, and a wait
   * always as one that joins its list.
   */
  readonly mixed: Set<number>
  private ranges: Int32Array = new Int32Array(1024)

  private readonly pooled = new Map<string, Stretch>()
  private readonly foreign: Stretch[] = []
  private stretches: Stretch[] = []
  private readonly ordinals = new Int32Array(33)
  private objects = new Map<string, number>()

  /** The views seen last in this execution, and where their first byte lies. */
  private readonly views: unknown[] = Array.from({ length: 8 })
  private readonly viewAddress = new Float64Array(8)
  private nextView = 0
  private lastView: unknown = undefined
  private lastAddress = 0
  /** Whether the view that `addressOf` was last asked about may be used with `Atomics`. */
  lastInteger: boolean = true
  private readonly viewInteger: boolean[] = Array.from({ length: 8 }, () => true)

  /** `mixed`: what a search with the same shift found out before it had to begin again. */
  constructor(shift: number, mixed: Set<number> = new Set()) {
    this.shift = shift
    this.mixed = mixed
  }

  /** Takes note of the range of an access. `sort` tells kinds of access apart that do not read values alike. */
  note(from: number, to: number, sort: number): void {
    if (to >= this.ranges.length) {
      const bigger = new Int32Array(Math.max(to + 1, this.cells) * 2)
      bigger.set(this.ranges)
      this.ranges = bigger
    }
    const range = ((from << 5) | Math.min(to - from, 15) | (sort << 4)) + 1
    let found = false
    for (let cell = from; cell < to; cell++) {
      if (this.ranges[cell] === range) continue
      if (this.ranges[cell] === 0) this.ranges[cell] = range
      else if (!this.mixed.has(cell)) {
        this.mixed.add(cell)
        found = true
      }
    }
    if (found) {
      for (let cell = from; cell < to; cell++) this.mixed.add(cell)
      throw new BeginAgain(this.shift, this.mixed)
    }
  }

  /** Forgets the last execution: buffers that the check makes again come back zeroed, others as they were found. */
  begin(): void {
    this.ordinals.fill(0)
    this.views.fill(undefined)
    this.lastView = undefined
    for (const stretch of this.foreign) {
      if (stretch.initial !== undefined) stretch.bytes.set(stretch.initial)
    }
  }

  /** Remembers what the set-up has put into memory, for `rewind`. */
  keep(): void {
    for (const stretch of this.stretches) {
      if (stretch.image === undefined) stretch.image = stretch.bytes.slice()
      else stretch.image.set(stretch.bytes)
    }
  }

  /** Memory as it was at `keep`: instead of another set-up. */
  rewind(): void {
    for (let i = 0; i < this.stretches.length; i++) {
      const { bytes, image, initial } = this.stretches[i]
      const was = image ?? initial
      if (was !== undefined) bytes.set(was)
    }
    for (let thread = 1; thread < this.ordinals.length; thread++) this.ordinals[thread] = 0
  }

  /** The buffer that `new SharedArrayBuffer(length)` gives to this thread (-1: set-up), the same in every execution. */
  allocate(thread: number, length: number): SharedArrayBuffer {
    const ordinal = this.ordinals[thread + 1]++
    const key = `${thread}/${ordinal}/${length}`
    let stretch = this.pooled.get(key)
    if (stretch === undefined) {
      stretch = this.lay(new SharedBuffer(length))
      this.pooled.set(key, stretch)
    } else {
      stretch.bytes.fill(0)
    }
    return stretch.buffer
  }

  /** A cell of its own for something that is not bytes: a mutex, the death of a thread. */
  objectCell(key: string): number {
    let cell = this.objects.get(key)
    if (cell === undefined) {
      cell = this.cells++
      this.objects.set(key, cell)
    }
    return cell
  }

  /** Where the first byte of a view lies. */
  addressOf(view: ArrayBufferView): number {
    if (view === this.lastView) return this.lastAddress
    for (let i = 0; i < 8; i++) {
      if (this.views[i] === view) {
        this.lastView = view
        this.lastAddress = this.viewAddress[i]
        this.lastInteger = this.viewInteger[i]
        return this.lastAddress
      }
    }
    const address = this.stretchOf(view.buffer as SharedArrayBuffer).start + view.byteOffset
    this.views[this.nextView] = view
    this.viewAddress[this.nextView] = address
    this.lastInteger = isIntegerView(view)
    this.viewInteger[this.nextView] = this.lastInteger
    this.nextView = (this.nextView + 1) & 7
    this.lastView = view
    this.lastAddress = address
    return address
  }

  /** The cell of the waiter list of an address inside a view's buffer. */
  listCell(view: ArrayBufferView, address: number): number {
    const stretch = this.stretchOf(view.buffer as SharedArrayBuffer)
    return (address + stretch.span) >> this.shift
  }

  /** Throws BeginAgain unless accesses of this size at this address fall on whole cells. */
  requireGranule(address: number, size: number): void {
    let shift = this.shift
    while (shift > 0 && ((address | size) & ((1 << shift) - 1)) !== 0) shift--
    if (shift !== this.shift) throw new BeginAgain(shift)
  }

  /** Every buffer of the check, in the order in which they were first met. */
  get buffers(): readonly { readonly buffer: SharedArrayBuffer; readonly bytes: Uint8Array }[] {
    return this.stretches
  }

  private stretchOf(buffer: SharedArrayBuffer): Stretch {
    for (const stretch of this.stretches) if (stretch.buffer === buffer) return stretch
    const stretch = this.lay(buffer)
    stretch.initial = stretch.bytes.slice()
    this.foreign.push(stretch)
    return stretch
  }

  private lay(buffer: SharedArrayBuffer): Stretch {
    const span = (buffer.byteLength + 7) & ~7
    const cells = span >> this.shift
    if (this.cells + 2 * cells > CELLS_MAX) {
      throw new CheckError(
        'ERR_CHECK_MEMORY',
        `the check's shared memory comes to more than ${CELLS_MAX} cells of ${1 << this.shift} bytes; give the check smaller capacities`,
      )
    }
    const stretch: Stretch = {
      buffer,
      bytes: new Uint8Array(buffer),
      start: this.cells << this.shift,
      span,
      initial: undefined,
      image: undefined,
    }
    this.cells += 2 * cells
    this.stretches.push(stretch)
    return stretch
  }
}

function isIntegerView(view: ArrayBufferView): boolean {
  return (
    view instanceof Int32Array ||
    view instanceof Uint32Array ||
    view instanceof Int8Array ||
    view instanceof Uint8Array ||
    view instanceof Int16Array ||
    view instanceof Uint16Array ||
    view instanceof BigInt64Array ||
    view instanceof BigUint64Array
  )
}

interface Stretch {
  readonly buffer: SharedArrayBuffer
  readonly bytes: Uint8Array
  readonly start: number
  readonly span: number
  /** What a buffer that the check did not make in this execution held when it was first met. */
  initial: Uint8Array | undefined
  /** What it held at `keep`. */
  image: Uint8Array | undefined
}

const SharedBuffer = SharedArrayBuffer
const CELLS_MAX = 1 << 24

/** The search must begin again: an access is smaller than a cell, or crosses one, and cells get this shift. */
export class BeginAgain extends Error {
  readonly shift: number
  readonly mixed: Set<number> | undefined

  constructor(shift: number, mixed?: Set<number>) {
    super(`cells must shrink to ${1 << shift} bytes`)
    this.shift = shift
    this.mixed = mixed
  }
}
