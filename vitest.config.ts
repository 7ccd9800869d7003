import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    testTimeout: 20_000,
    // Most of the time is spent waiting for processes and clocks: two files at once, also on two cores.
    maxWorkers: 2,
    passWithNoTests: false,
    projects: [
      {
        extends: true,
        test: {
          name: 'ev',
          include: ['test/**/*.test.ts'],
          exclude: ['test/cluster/**'],
          globalSetup: 'test/support/build-setup.ts',
        },
      },
      {
        // What is stored, once more on a real PostgreSQL, and what needs one.
        extends: true,
        test: {
          name: 'PostgreSQL',
          include: ['test/store/**/*.test.ts', 'test/cluster/**/*.test.ts'],
          globalSetup: ['test/support/build-setup.ts', 'test/support/postgres-setup.ts'],
          env: { EV_TEST_DATABASE: 'postgres' },
        },
      },
    ],
  },
})
