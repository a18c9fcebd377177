import { join } from 'node:path'
import { rolldown } from 'rolldown'

/** Bundles the page with all that it imports into one script. */
export async function bundlePage(): Promise<string> {
  const bundle = await rolldown({
    input: join(import.meta.dirname, 'page.tsx'),
    platform: 'browser',
    transform: { target: 'es2022' },
    treeshake: { moduleSideEffects: false },
    logLevel: 'warn',
  })
  try {
    const { output } = await bundle.generate({ format: 'esm', minify: true, codeSplitting: false })
    if (output.length !== 1) throw new Error(`the page is ${output.length} files; it must be one`)
    return output[0].code
  } finally {
    await bundle.close()
  }
}
