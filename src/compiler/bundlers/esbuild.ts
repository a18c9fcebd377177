import type { Plugin } from 'esbuild'
import type { HeddleOptions } from './options.ts'
import { heddle } from './unplugin.ts'

export type { HeddleOptions }

const plugin: (options?: HeddleOptions) => Plugin = heddle.esbuild
export default plugin
