import type { RolldownPlugin } from 'unplugin'
import { type HeddleOptions, heddle } from './unplugin.ts'

export type { HeddleOptions }

const plugin: (options?: HeddleOptions) => RolldownPlugin[] = heddle.rolldown
export default plugin
