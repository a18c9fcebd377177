import { readFile } from 'node:fs/promises'

/** The page's one script. The package contains it; in the source tree it is bundled when it is needed. */
export async function pageScript(): Promise<string> {
  if (!import.meta.url.endsWith('.ts')) return await readFile(new URL('./page.js', import.meta.url), 'utf8')
  const address = new URL('../../view/bundle.ts', import.meta.url).href
  const { bundlePage } = (await import(address)) as { bundlePage(): Promise<string> }
  return await bundlePage()
}
