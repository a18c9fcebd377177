import { defineConfig, type ViteUserConfig } from 'vitest/config'
import { heddleChecker } from './src/checker/run/vite.ts'

const config: ViteUserConfig = defineConfig({
  // Checks inside tests: a test file that imports the checker is instrumented.
  plugins: [heddleChecker()],
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts', 'bench/**/*.test.ts', 'examples/**/*.test.ts'],
    exclude: ['**/fixtures/**', '**/node_modules/**'],
    pool: 'forks',
    // Twice the cores that we count on: half of the time of these tests is spent waiting for other processes
    // and for deadlines.
    maxWorkers: 4,
    testTimeout: 300_000,
    // A busy machine may take its time: what is polled for comes, or the test hangs.
    expect: { poll: { timeout: 120_000, interval: 5 } },
    hookTimeout: 300_000,
  },
})

export default config
