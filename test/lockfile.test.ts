import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

interface Locked {
  version?: string
  resolved?: string
  dependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
}

for (const folder of ['.', 'test/node20', 'test/node22', 'test/node24', 'test/matrix']) {
  const path = join(import.meta.dirname, '..', folder, 'package-lock.json')
  const packages = Object.entries<Locked>(JSON.parse(readFileSync(path, 'utf8')).packages)
  const locked = new Set(packages.map(([name]) => name.slice(name.lastIndexOf('node_modules/') + 13)))

  test(`the lock file of ${folder} has every required package, also those for other platforms`, () => {
    const missing = packages.flatMap(([from, { dependencies, optionalDependencies }]) =>
      Object.keys({ ...dependencies, ...optionalDependencies })
        .filter(name => !locked.has(name))
        .map(name => `${name}, for ${from}: recreate the file with \`npm run lock\``),
    )
    expect(missing).toEqual([])
  })

  test(`the lock file of ${folder} names no host`, () => {
    expect(packages.filter(([, { resolved }]) => resolved !== undefined).map(([name]) => name)).toEqual([])
  })
}
