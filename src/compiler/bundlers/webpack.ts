import type { WebpackPluginInstance } from 'unplugin'
import { type HeddleOptions, heddle } from './unplugin.ts'

export type { HeddleOptions }

const plugin: (options?: HeddleOptions) => WebpackPluginInstance = heddle.webpack
export default plugin
