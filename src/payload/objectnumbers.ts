/** Objects met so far are searched one by one up to this many, and by a Map from there. */
const SEARCHED_MAX = 8

/** The objects that an encoder has met, each with its number: one that comes again is written as that. */
export class ObjectNumbers {
  count = 0
  private readonly list: object[] = []
  private map: Map<object, number> | null = null

  /** The number of an object that was met before; -1: it is met now. */
  number(object: object): number {
    const { list, count } = this
    if (this.map !== null) {
      const number = this.map.get(object)
      if (number !== undefined) return number
      this.map.set(object, count)
    } else {
      for (let number = 0; number < count; number++) if (list[number] === object) return number
      list.push(object)
      if (count === SEARCHED_MAX) {
        this.map = new Map()
        for (let number = 0; number <= count; number++) this.map.set(list[number], number)
      }
    }
    this.count = count + 1
    return -1
  }

  /** Forgets all but the first so many. */
  forget(count: number): void {
    if (this.map !== null) {
      if (count === 0) this.map = null
      else for (const [object, number] of this.map) if (number >= count) this.map.delete(object)
    }
    if (this.list.length > count) this.list.length = count
    this.count = count
  }
}
