/** The work of the server: plain functions that call libraries from npm. Neither uses heddle. */
import { Decimal } from 'decimal.js'
import { marked } from 'marked'

/** Euler's number to so many digits. */
export function euler(digits: number): string {
  const Precise = Decimal.clone({ precision: digits })
  return new Precise(1).exp().toString()
}

/** A page as HTML. */
export function page(text: string): string {
  return marked.parse(text) as string
}
