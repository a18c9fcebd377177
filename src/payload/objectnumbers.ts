/** Up to this many objects are searched in a list; more are searched in a Map. */
const SEARCHED_MAX = 8

/** The numbers of the objects that an encoder has written. A second occurrence is written as its number. */
export class ObjectNumbers {
  count = 0
  private readonly list: object[] = []
  private map: Map<object, number> | null = null

  /**
   * Returns the number of an object that was written before; -1 for a new one, which gets the next number.
   */
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

  /** Forgets all objects but the first `count`. */
  forget(count: number): void {
    if (this.map !== null) {
      if (count === 0) this.map = null
      else for (const [object, number] of this.map) if (number >= count) this.map.delete(object)
    }
    if (this.list.length > count) this.list.length = count
    this.count = count
  }
}
