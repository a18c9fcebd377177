import type { RollupPlugin } from 'unplugin'
import { type HeddleOptions, heddle } from './unplugin.ts'

export type { HeddleOptions }

const plugin: (options?: HeddleOptions) => RollupPlugin[] = heddle.rollup
export default plugin
