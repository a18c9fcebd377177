import type { WebpackPluginInstance } from 'webpack'
import type { HeddleOptions } from './options.ts'
import { heddle } from './unplugin.ts'

export type { HeddleOptions }

const plugin: (options?: HeddleOptions) => WebpackPluginInstance = heddle.webpack
export default plugin
