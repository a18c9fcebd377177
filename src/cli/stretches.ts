/** Reads the CPU profile of one thread: which code ran how long without a safepoint. */

export interface Profile {
  readonly nodes: readonly ProfileNode[]
  /** Microseconds, on the clock of `process.hrtime`. */
  readonly startTime: number
  readonly samples?: readonly number[]
  readonly timeDeltas?: readonly number[]
}

interface ProfileNode {
  readonly id: number
  readonly callFrame: CallFrame
  readonly children?: readonly number[]
}

export interface CallFrame {
  readonly functionName: string
  readonly url: string
  /** From 0; -1: a function of the engine. */
  readonly lineNumber: number
  readonly columnNumber: number
}

/** A time in which code of the program kept its thread without a safepoint. */
export interface Stretch {
  readonly ms: number
  /** The function of the program that took most of the time. */
  readonly hot: CallFrame
  /** The function of the engine that `hot` called, if it took most of that time. */
  readonly builtIn: string | null
  /** The outermost function of the program. */
  readonly entry: CallFrame
}

/** One line of the report that the threads write for the command. */
export interface ThreadReport {
  readonly thread: string
  readonly stretches: readonly Stretch[]
}

/** The file that the threads write to. */
export const DOCTOR_VARIABLE = 'HEDDLE_DOCTOR'

/** The most time between two samples of a running thread. */
const SAMPLE_US_MOST = 2500

/** A time without a safepoint, in microseconds. */
export interface Gap {
  readonly from: number
  readonly to: number
}

/**
 * Each run of samples in code of the program, inside one gap between safepoints. `isOwn` distinguishes the
 * code of the program from that of Node and of heddle, which has no safepoints.
 */
export function stretchesOf(
  profile: Profile,
  gaps: readonly Gap[],
  isOwn: (url: string) => boolean,
): Stretch[] {
  const byId = new Map(profile.nodes.map(node => [node.id, node]))
  const parents = new Map<number, number>()
  for (const { id, children = [] } of profile.nodes) for (const child of children) parents.set(child, id)
  const seen = new Map<number, Seen | null>()
  const stackOf = (id: number): Seen | null => {
    let found = seen.get(id)
    if (found === undefined) {
      found = readStack(id, byId, parents, isOwn)
      seen.set(id, found)
    }
    return found
  }
  const found: Stretch[] = []
  const { samples = [], timeDeltas = [] } = profile
  let at = profile.startTime
  let gap = 0
  let open: Run | null = null
  const close = (): void => {
    if (open !== null) found.push(concluded(open))
    open = null
  }
  for (const [index, id] of samples.entries()) {
    const passed = Math.max(0, timeDeltas[index] ?? 0)
    at += passed
    // A thread that the operating system has descheduled takes no samples. The code is not charged for it.
    const delta = Math.min(passed, SAMPLE_US_MOST)
    while (gap < gaps.length && gaps[gap]!.to < at) {
      gap++
      close()
    }
    const stack = stackOf(id)
    if (stack === null || gap >= gaps.length || at < gaps[gap]!.from) {
      close()
      continue
    }
    open ??= { us: 0, seen: new Map() }
    open.us += delta
    open.seen.set(stack, (open.seen.get(stack) ?? 0) + delta)
  }
  close()
  return found.sort((left, right) => right.ms - left.ms)
}

interface Seen {
  readonly hot: CallFrame
  readonly builtIn: string | null
  readonly entry: CallFrame
}

interface Run {
  us: number
  readonly seen: Map<Seen, number>
}

function readStack(
  id: number,
  byId: ReadonlyMap<number, ProfileNode>,
  parents: ReadonlyMap<number, number>,
  isOwn: (url: string) => boolean,
): Seen | null {
  let hot: CallFrame | null = null
  let entry: CallFrame | null = null
  let builtIn: string | null = null
  for (let at: number | undefined = id; at !== undefined; at = parents.get(at)) {
    const { callFrame } = byId.get(at)!
    if (isOwn(callFrame.url)) {
      hot ??= callFrame
      entry = callFrame
    } else if (hot === null && isLoading(callFrame.url)) return null
    else if (hot === null && callFrame.url === '' && !/^\(|^$/.test(callFrame.functionName)) {
      builtIn ??= callFrame.functionName
    }
  }
  return hot === null ? null : { hot, builtIn, entry: entry! }
}

/** Node loads a module, or the compiler compiles it: this happens once. */
function isLoading(url: string): boolean {
  return /^node:internal\/modules\/|\/(?:dist|src)\/compiler\/(?!runtime)/.test(url)
}

/** The function, and the built-in inside it, that took the most time. */
function concluded({ us, seen }: Run): Stretch {
  const sums = new Map<CallFrame, { us: number; most: Seen; mostUs: number }>()
  for (const [stack, spent] of seen) {
    const sum = sums.get(stack.hot) ?? { us: 0, most: stack, mostUs: 0 }
    sum.us += spent
    if (spent > sum.mostUs) {
      sum.most = stack
      sum.mostUs = spent
    }
    sums.set(stack.hot, sum)
  }
  const { most } = [...sums.values()].reduce((best, sum) => (sum.us > best.us ? sum : best))
  return { ms: us / 1000, ...most }
}
