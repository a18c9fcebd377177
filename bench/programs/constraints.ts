'use task'

/**
 * One-way constraints that are planned and propagated: many small methods over linked objects, as in
 * deltablue.
 */
export const size = 60
export const small = 1

class Variable {
  value: number
  readonly constraints: Constraint[] = []
  determinedBy: Constraint | null = null
  mark = 0
  constructor(value: number) {
    this.value = value
  }
}

abstract class Constraint {
  readonly strength: number
  constructor(strength: number) {
    this.strength = strength
  }
  abstract inputs(): Variable[]
  abstract output(): Variable
  abstract execute(): void
  attach(): void {
    for (const variable of this.inputs()) variable.constraints.push(this)
    this.output().constraints.push(this)
  }
  ready(mark: number): boolean {
    return this.inputs().every(variable => variable.mark === mark || variable.determinedBy === null)
  }
}

class Scale extends Constraint {
  readonly from: Variable
  readonly to: Variable
  readonly factor: number
  readonly offset: number
  constructor(from: Variable, to: Variable, factor: number, offset: number) {
    super(1)
    this.from = from
    this.to = to
    this.factor = factor
    this.offset = offset
  }
  override inputs(): Variable[] {
    return [this.from]
  }
  override output(): Variable {
    return this.to
  }
  override execute(): void {
    this.to.value = (this.from.value * this.factor + this.offset) % 10_007
  }
}

class Sum extends Constraint {
  readonly parts: Variable[]
  readonly total: Variable
  constructor(parts: Variable[], total: Variable) {
    super(2)
    this.parts = parts
    this.total = total
  }
  override inputs(): Variable[] {
    return this.parts
  }
  override output(): Variable {
    return this.total
  }
  override execute(): void {
    let sum = 0
    for (const part of this.parts) sum += part.value
    this.total.value = sum % 10_007
  }
}

class Planner {
  mark = 0
  plan(source: Variable): Constraint[] {
    const mark = ++this.mark
    const order: Constraint[] = []
    const seen = new Set<Constraint>()
    source.mark = mark
    const work = [source]
    while (work.length > 0) {
      const variable = work.pop()!
      for (const constraint of variable.constraints) {
        if (seen.has(constraint) || constraint.output() === variable || !constraint.ready(mark)) continue
        seen.add(constraint)
        constraint.output().mark = mark
        constraint.output().determinedBy = constraint
        order.push(constraint)
        work.push(constraint.output())
      }
    }
    return order
  }
  propagate(plan: Constraint[], source: Variable, value: number): void {
    source.value = value
    plan.forEach(constraint => constraint.execute())
  }
}

export function run(rounds: number): number {
  let checksum = 0
  for (let round = 0; round < rounds; round++) {
    const source = new Variable(round)
    const leaves: Variable[] = []
    let previous = source
    for (let i = 0; i < 60; i++) {
      const next = new Variable(0)
      new Scale(previous, next, (i % 5) + 1, i).attach()
      leaves.push(next)
      previous = next
    }
    const total = new Variable(0)
    new Sum([previous], total).attach()
    const planner = new Planner()
    for (let value = 0; value < 25; value++) {
      const plan = planner.plan(source)
      for (let repeat = 0; repeat < 8; repeat++) planner.propagate(plan, source, value + repeat)
      checksum = (checksum + total.value + leaves[value]!.value) % 1_000_003
    }
  }
  return checksum
}
