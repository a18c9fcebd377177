import type { RspackPluginInstance } from '@rspack/core'
import type { HeddleOptions } from './options.ts'
import { heddle } from './unplugin.ts'

export type { HeddleOptions }

const plugin: (options?: HeddleOptions) => RspackPluginInstance = heddle.rspack
export default plugin
