import { CheckError } from '../errors.ts'
import { pending, siteName } from './pending.ts'
import { bufferProxy, kindOf, type SharedStretch, typedArrays } from './views.ts'

/**
 * Shared memory in cells. All buffers of a check lie in one address range, and a cell is a granule of that
 * range. Two accesses conflict when they share a cell, so the granule must divide each access. It starts at
 * eight bytes; `BeginAgain` says that the search must begin again with a smaller one.
 *
 * After the bytes of a buffer comes a range of the same length for its waiter lists: the list of an address
 * is a separate cell, which conflicts only with other operations on that list.
 */
export class Memory {
  readonly shift: number
  /** The number of cells allocated so far. */
  cells: number = 1

  /**
   * Cells whose accesses do not all have one range. There, the values before and after single events do not
   * tell whether a compare-exchange would succeed in another order. So it always counts as a write, and a
   * wait always counts as joining its list.
   */
  readonly mixed: Set<number>
  private ranges: Int32Array = new Int32Array(1024)

  private readonly pooled = new Map<string, Stretch>()
  private stretches: Stretch[] = []
  private readonly ordinals = new Int32Array(33)
  private objects = new Map<string, number>()
  private readonly mutexes = new Map<number, object>()

  /** The views used last in this execution, and the address of the first byte of each. */
  private readonly views: unknown[] = Array.from({ length: 8 })
  private readonly viewAddress = new Float64Array(8)
  private nextView = 0
  private lastView: unknown = undefined
  private lastAddress = 0
  /** Whether the view of the last call of `addressOf` may be used with `Atomics`. */
  lastInteger: boolean = true
  private readonly viewInteger: boolean[] = Array.from({ length: 8 }, () => true)

  /** `mixed`: the cells that a search with the same shift found before it had to begin again. */
  constructor(shift: number, mixed: Set<number> = new Set()) {
    this.shift = shift
    this.mixed = mixed
  }

  /**
   * Records the range of an access. `sort`: accesses of different sorts do not read values in the same way.
   */
  note(from: number, to: number, sort: number): void {
    if (to >= this.ranges.length) {
      const bigger = new Int32Array(Math.max(to + 1, this.cells) * 2)
      bigger.set(this.ranges)
      this.ranges = bigger
    }
    const range = ((from << 5) | Math.min(to - from, 15) | (sort << 4)) + 1
    let found = false
    for (let cell = from; cell < to; cell++) {
      const other = this.ranges[cell] - 1
      if (other + 1 === range) continue
      if (other < 0) this.ranges[cell] = range
      else if (!this.mixed.has(cell)) {
        // The earlier access in this place is mixed too, with all its cells.
        for (let at = other >> 5; at < (other >> 5) + (other & 15); at++) this.mixed.add(at)
        found = true
      }
    }
    if (found) {
      for (let cell = from; cell < to; cell++) this.mixed.add(cell)
      throw new BeginAgain(this.shift, this.mixed)
    }
  }

  /** Starts an execution: buffers that the check makes again are returned zeroed. */
  begin(): void {
    pending.grows = false
    this.mutexes.clear()
    this.ordinals.fill(0)
    this.views.fill(undefined)
    this.lastView = undefined
  }

  /** A copy of the contents. */
  contents(): Uint8Array[] {
    return this.stretches.map(({ bytes, length }) => bytes.slice(0, length))
  }

  /** Saves the contents that the set-up has written, for `rewind`. */
  keep(): void {
    for (const stretch of this.stretches) {
      stretch.keptLength = stretch.length
      if (stretch.image === undefined) stretch.image = stretch.bytes.slice()
      else stretch.image.set(stretch.bytes)
    }
  }

  /** Restores memory to its state at `keep`: replaces another set-up. */
  rewind(): void {
    for (let i = 0; i < this.stretches.length; i++) {
      const stretch = this.stretches[i]
      stretch.length = stretch.keptLength
      if (stretch.image !== undefined) stretch.bytes.set(stretch.image)
    }
    for (let thread = 1; thread < this.ordinals.length; thread++) this.ordinals[thread] = 0
  }

  /**
   * The buffer that `new SharedArrayBuffer(length, { maxByteLength: max })` returns to this thread (-1:
   * set-up), as its proxy. It is the same in every execution.
   */
  allocate(thread: number, length: number, max: number | undefined): SharedArrayBuffer {
    const ordinal = this.ordinals[thread + 1]++
    const key = `${thread}/${ordinal}/${length}/${max}`
    let stretch = this.pooled.get(key)
    if (stretch === undefined) {
      stretch = this.lay(new SharedBuffer(max ?? length), max !== undefined)
      this.pooled.set(key, stretch)
    } else {
      stretch.bytes.fill(0)
    }
    stretch.length = length
    stretch.keptLength = length
    if (stretch.growable) pending.grows = true
    return bufferProxy(stretch)
  }

  /** A separate cell for an object that is not bytes: a mutex, the death of a thread. */
  objectCell(key: string): number {
    let cell = this.objects.get(key)
    if (cell === undefined) {
      cell = this.cells++
      this.objects.set(key, cell)
    }
    return cell
  }

  /** The cell of a mutex. Throws when another mutex of this execution has the same id. */
  mutexCell(mutex: { readonly id: number }): number {
    const known = this.mutexes.get(mutex.id)
    if (known === undefined) this.mutexes.set(mutex.id, mutex)
    else if (known !== mutex) {
      throw new CheckError(
        'ERR_CHECK_SETUP',
        `two CheckedMutex have the id ${mutex.id}; give each a different id, or none`,
      )
    }
    return this.objectCell(`mutex ${mutex.id}`)
  }

  /** The address of the first byte of a view. */
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

  /** Throws BeginAgain unless accesses of this size at this address cover whole cells. */
  requireGranule(address: number, size: number): void {
    let shift = this.shift
    while (shift > 0 && ((address | size) & ((1 << shift) - 1)) !== 0) shift--
    if (shift !== this.shift) throw new BeginAgain(shift)
  }

  /** All buffers of the check, in the order of their first use. */
  get buffers(): readonly { readonly buffer: SharedArrayBuffer; readonly bytes: Uint8Array }[] {
    return this.stretches
  }

  /** The address range of a real buffer. */
  stretchOf(buffer: SharedArrayBuffer): Stretch {
    for (const stretch of this.stretches) if (stretch.buffer === buffer) return stretch
    const place = pending.kind.findIndex(
      (_, t) => (pending.view[t] as ArrayBufferView | undefined)?.buffer === buffer,
    )
    throw new CheckError(
      'ERR_CHECK_MEMORY',
      `a thread touched shared memory that the set-up did not make${place < 0 ? '' : `, at ${siteName(pending.site[place])}`}; make it in the set-up, which runs before every execution, so that it is the same in each and every access to it is seen`,
    )
  }

  /** The cell for the length of a buffer that can grow. */
  lengthCell(stretch: Stretch): number {
    return this.objectCell(`length ${stretch.start}`)
  }

  private lay(buffer: SharedArrayBuffer, growable: boolean): Stretch {
    const span = (buffer.byteLength + 7) & ~7
    const cells = span >> this.shift
    if (this.cells + 2 * cells > CELLS_MAX) {
      throw new CheckError(
        'ERR_CHECK_MEMORY',
        `the check's shared memory takes more than ${CELLS_MAX} cells of ${1 << this.shift} bytes; give the check smaller capacities`,
      )
    }
    const stretch: Stretch = {
      buffer,
      growable,
      bytes: new typedArrays['Uint8Array']!(buffer),
      start: this.cells << this.shift,
      span,
      length: buffer.byteLength,
      keptLength: buffer.byteLength,
      proxy: undefined,
      image: undefined,
    }
    this.cells += 2 * cells
    this.stretches.push(stretch)
    return stretch
  }
}

const FLOATS: ReadonlySet<string | undefined> = new Set([
  'Float16Array',
  'Float32Array',
  'Float64Array',
  'Uint8ClampedArray',
  undefined,
])

function isIntegerView(view: ArrayBufferView): boolean {
  return !FLOATS.has(kindOf(view))
}

export interface Stretch extends SharedStretch {
  readonly bytes: Uint8Array
  readonly start: number
  readonly span: number
  /** Length and contents at `keep`. */
  keptLength: number
  image: Uint8Array | undefined
}

const SharedBuffer = SharedArrayBuffer
const CELLS_MAX = 1 << 24

/** The search must begin again with cells of this shift: an access is smaller than a cell, or crosses one. */
export class BeginAgain extends Error {
  readonly shift: number
  readonly mixed: Set<number> | undefined
  /** Cells that do not fit: see awaits.ts. */
  readonly unfit: readonly number[]

  constructor(shift: number, mixed?: Set<number>, unfit: readonly number[] = []) {
    super(`cells must shrink to ${1 << shift} bytes`)
    this.shift = shift
    this.mixed = mixed
    this.unfit = unfit
  }
}
