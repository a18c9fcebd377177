import { expect, test } from 'vitest'
import { packageError } from './packages.ts'

const notFound = (name: string): Error =>
  Object.assign(new Error(`Cannot find package '${name}' imported from /a/b.js`), {
    code: 'ERR_MODULE_NOT_FOUND',
  })

test('a package that is not there, and one that lacks another one, have different errors', () => {
  const missing = 'run npm install pg-boss'
  expect(packageError('pg-boss', missing, notFound('pg-boss')).message).toBe(missing)
  const cause = notFound('@opentelemetry/api')
  const error = packageError('pg-boss', missing, cause)
  expect(error.message).toBe(
    `heddle/durable: the package 'pg-boss' is installed and cannot be loaded: ${cause.message}; install that too`,
  )
  expect(error.cause).toBe(cause)
})
