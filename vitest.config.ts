import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: 'test/build.ts',
    testTimeout: 20_000,
    // Most of the time is spent waiting for processes and clocks: two files at once, also on two cores.
    maxWorkers: 2,
    passWithNoTests: false,
  },
})
