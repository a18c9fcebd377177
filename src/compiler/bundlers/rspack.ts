import type { RspackPluginInstance } from 'unplugin'
import { type HeddleOptions, heddle } from './unplugin.ts'

export type { HeddleOptions }

const plugin: (options?: HeddleOptions) => RspackPluginInstance = heddle.rspack
export default plugin
