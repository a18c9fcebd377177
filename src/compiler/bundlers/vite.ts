import type { VitePlugin } from 'unplugin'
import { type HeddleOptions, heddle } from './unplugin.ts'

export type { HeddleOptions }

const plugin: (options?: HeddleOptions) => VitePlugin[] = heddle.vite
export default plugin
