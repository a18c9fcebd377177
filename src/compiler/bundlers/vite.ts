import type { Plugin } from 'vite'
import type { HeddleOptions } from './options.ts'
import { heddle } from './unplugin.ts'

export type { HeddleOptions }

const plugin: (options?: HeddleOptions) => Plugin[] = heddle.vite
export default plugin
