import { defineConfig } from 'vitest/config'

// The tests of one module of modules.mjs: Stryker's own selection of test files activates mutants of
// code that runs at import too late (stryker-js#6144).
export default defineConfig({
  test: {
    include: JSON.parse(process.env.EV_MUTATION_TESTS ?? '[]'),
    // The files of one run share the loaded modules, and the next run loads them again: a mutant of
    // a table is active at import only.
    isolate: false,
    testTimeout: 20_000,
    hookTimeout: 20_000,
    setupFiles: ['test/support/cleanup-setup.ts'],
    globalSetup: ['test/support/seed-setup.ts', 'test/support/sqlite-setup.ts'],
    // The same cases of property tests for each mutant.
    env: { EV_TEST_SEED: '1' },
  },
})
