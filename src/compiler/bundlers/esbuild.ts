import type { EsbuildPlugin } from 'unplugin'
import { type HeddleOptions, heddle } from './unplugin.ts'

export type { HeddleOptions }

const plugin: (options?: HeddleOptions) => EsbuildPlugin = heddle.esbuild
export default plugin
