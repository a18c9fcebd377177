/** The payment service. */
export type Pay = (buyer: string) => Promise<void>

export interface Hall {
  readonly sold: readonly string[]
  book(buyer: string): Promise<boolean>
}

/** Checks whether a seat is free, charges, and sells it: two buyers can both find the last seat free. */
export class TrustingHall implements Hall {
  readonly sold: string[] = []
  private readonly seats: number
  private readonly pay: Pay

  constructor(seats: number, pay: Pay) {
    this.seats = seats
    this.pay = pay
  }

  async book(buyer: string): Promise<boolean> {
    if (this.sold.length >= this.seats) return false
    await this.pay(buyer)
    this.sold.push(buyer)
    return true
  }
}

/** Reserves the seat before it awaits the payment, and releases it when the payment fails. */
export class HoldingHall implements Hall {
  readonly sold: string[] = []
  private readonly seats: number
  private readonly pay: Pay
  private held = 0

  constructor(seats: number, pay: Pay) {
    this.seats = seats
    this.pay = pay
  }

  async book(buyer: string): Promise<boolean> {
    if (this.sold.length + this.held >= this.seats) return false
    this.held++
    try {
      await this.pay(buyer)
      this.sold.push(buyer)
      return true
    } finally {
      this.held--
    }
  }
}
