/** Numbers that an option takes. commander prints the message after the option and the value. */
import { InvalidArgumentError } from 'commander'
import { CPU_MAX } from '../arena/sync/thread.ts'

export function wholeNumber(text: string): number {
  const value = Number(text)
  if (text.trim() === '' || !Number.isInteger(value) || value < 0)
    throw new InvalidArgumentError('give a whole number.')
  return value
}

export function cpuCount(text: string): number {
  const value = wholeNumber(text)
  if (value < 1 || value > CPU_MAX) throw new InvalidArgumentError(`give a number from 1 to ${CPU_MAX}.`)
  return value
}

export function milliseconds(text: string): number {
  const value = Number(text)
  if (!(value > 0)) throw new InvalidArgumentError('give a number of milliseconds above 0.')
  return value
}
