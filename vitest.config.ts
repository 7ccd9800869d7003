import { existsSync, globSync, readFileSync, statfsSync } from 'node:fs'
import { basename } from 'node:path'
import { configDefaults, defineConfig } from 'vitest/config'

/** Files that spawn processes, drive a browser, ask real servers or wait for real clocks. */
const SLOW = 'test/**/*.slow.test.ts'
/** The slow tests that take longest: CI runs them if it has time left, and a release always does. */
const RELEASE = [
  'test/chaos/!(webhooks).slow.test.ts',
  'test/cli/restore.slow.test.ts',
  'test/{csv,formats}/spreadsheet.slow.test.ts',
  'test/dashboard/browser/{feedback,health,keys,lists,overview,pages,restart,usage,webhooks}.slow.test.ts',
  'test/deploy/*.slow.test.ts',
  'test/engine/address/lists.slow.test.ts',
  'test/journey/reachability/*.slow.test.ts',
  'test/nth-call/*.slow.test.ts',
  'test/pack.slow.test.ts',
]
/**
 * The slow tests that CI leaves out on a slow machine, to stay within 15 minutes: those that repeat a
 * test in process with other means, or a part of the tests of a release.
 */
const LONG = [
  'test/chaos/webhooks.slow.test.ts',
  'test/cli/mcp.slow.test.ts',
  'test/cli/widths.slow.test.ts',
  'test/dashboard/browser/*.slow.test.ts',
  'test/fuzz/*.slow.test.ts',
  'test/journey/list-budgets.slow.test.ts',
  'test/journey/serve/docs-samples.slow.test.ts',
  'test/lists/{kills,scenarios}.slow.test.ts',
  'test/node-versions.slow.test.ts',
  'test/postgres/http/cut-off.slow.test.ts',
  'test/postgres/lists/scenarios.slow.test.ts',
  'test/postgres/queue/processes.slow.test.ts',
]
/**
 * Only ends what hangs: beside load on both cores, a crash test or all cases of a property take
 * minutes.
 */
const SLOW_TIMEOUT_MS = 300_000
/** Files whose tests need PostgreSQL: several processes on one database. */
const CLUSTER = 'test/postgres/**'
/** Of these, what covers next to no branch of its own: `stored` runs it. */
const SHARED = ['test/postgres/http/shared.test.ts']
/** Files that run on both databases: on SQLite in `ev`, on PostgreSQL in `stored`. */
const STORED = 'test/**/*.db.test.ts'

/** Files with property tests: `npm test` runs a tenth of the cases at most, `test:release` all. */
const PROPERTIES = globSync('test/**/*.test.ts', {
  exclude: path => basename(path) === 'node_modules',
}).filter(
  file =>
    !file.endsWith('.slow.test.ts') && readFileSync(file, 'utf8').includes('support/property'),
)

/** Temporary files, most of them databases, are in memory where there is room: a fifth less time. */
const MEMORY = '/dev/shm'
const MEMORY_BYTES_MIN = 2 * 1024 ** 3
if (process.env.TMPDIR === undefined && existsSync(MEMORY)) {
  const { bavail, bsize } = statfsSync(MEMORY)
  if (bavail * bsize >= MEMORY_BYTES_MIN) process.env.TMPDIR = MEMORY
}

/**
 * Most code of a test runs a few times: without the compiler that optimizes most, an eighth less CPU
 * time. Added to the arguments for all projects.
 */
const SHORT_LIVED = ['--no-turbofan']

const setup = (...names: string[]) => names.map(name => `test/support/${name}-setup.ts`)

/** A project of slow tests; `left`: those of its files that another project runs. */
const slowProject = (name: string, include: string[], left: string[] = []) => ({
  extends: true as const,
  test: {
    name,
    include,
    exclude: [...configDefaults.exclude, ...left],
    testTimeout: SLOW_TIMEOUT_MS,
    hookTimeout: SLOW_TIMEOUT_MS,
    expect: { poll: { timeout: SLOW_TIMEOUT_MS } },
    // Processes and browsers that a file leaves behind end with its worker.
    isolate: true,
    globalSetup: setup('build', 'seed', 'sqlite', 'postgres'),
    env: { EV_TEST_ALL: '1' },
  },
})

/**
 * `npm test` runs `ev` and `PostgreSQL`: what runs in this process, in two to four minutes on
 * two cores. `npm run test:rest` runs `slow`, `stored` and `long`, `npm run test:release` runs
 * `release` and `properties`; `npm run test:all` runs everything.
 */
export default defineConfig({
  test: {
    // Only ends a test that hangs: a busy machine may take long.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // One more than cores: tests also wait for files, timers and PostgreSQL.
    maxWorkers: 3,
    passWithNoTests: false,
    // Modules of src keep no state, so files share the loaded modules: a third of the CPU time.
    isolate: false,
    // A file that has not changed is not transformed again: three seconds less for each run.
    fsModuleCache: true,
    // Services of tests live for milliseconds: with larger young generations of the heap, a tenth
    // less CPU time.
    execArgv: ['--min-semi-space-size=64', '--max-semi-space-size=64'],
    setupFiles: setup('cleanup'),
    coverage: {
      provider: 'v8',
      include: ['src/**/*.ts'],
      // Runs in browsers, where the slow tests of the dashboard see it.
      exclude: ['src/dashboard/browser/**', '**/*.d.ts'],
      reporter: ['text-summary', 'json-summary'],
      // A floor below the figures in CONTRIBUTING.md: `npm run coverage` fails under it.
      thresholds: { lines: 97, branches: 92 },
    },
    projects: [
      {
        extends: true,
        test: {
          name: 'ev',
          execArgv: SHORT_LIVED,
          include: ['test/**/*.test.ts'],
          exclude: [...configDefaults.exclude, SLOW, CLUSTER],
          globalSetup: setup('seed', 'sqlite'),
        },
      },
      {
        extends: true,
        test: {
          name: 'PostgreSQL',
          execArgv: SHORT_LIVED,
          include: [`${CLUSTER}/*.test.ts`],
          exclude: [...configDefaults.exclude, SLOW, ...SHARED],
          globalSetup: setup('seed', 'sqlite', 'postgres'),
          env: { EV_TEST_DATABASE: 'postgres' },
        },
      },
      {
        extends: true,
        test: {
          name: 'stored',
          include: [STORED, ...SHARED],
          globalSetup: setup('seed', 'sqlite', 'postgres'),
          env: { EV_TEST_DATABASE: 'postgres' },
        },
      },
      slowProject('slow', [SLOW], [...RELEASE, ...LONG]),
      slowProject('long', LONG, RELEASE),
      slowProject('release', RELEASE),
      {
        extends: true,
        test: {
          name: 'properties',
          include: PROPERTIES,
          testTimeout: SLOW_TIMEOUT_MS,
          globalSetup: setup('seed', 'sqlite', 'postgres'),
          env: { EV_TEST_ALL: '1' },
        },
      },
    ],
  },
})
