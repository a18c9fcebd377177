import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { moduleKey } from './modulekey.ts'

test('a module is named by its package and its path in it, wherever the package is', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'heddle-key-'))
  try {
    for (const place of ['one', 'two/deeper']) {
      const root = join(folder, place)
      await mkdir(join(root, 'src', 'inner'), { recursive: true })
      await writeFile(join(root, 'package.json'), JSON.stringify({ name: '@scope/app' }))
      // It names no package: it only says how the files are loaded.
      await writeFile(join(root, 'src', 'package.json'), JSON.stringify({ type: 'module' }))
      expect(moduleKey(join(root, 'src', 'inner', 'work.ts'))).toBe('@scope/app/src/inner/work.ts')
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})
