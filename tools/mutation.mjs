// Mutation tests: changes one expression of the source at a time, and counts the changes (mutants)
// that no test detects. Fails if a module has a lower score than its floor in mutation/modules.mjs.
//
//   npm run test:mutation -- [MODULE …] [--changed COMMIT] [--force]
//
// Without MODULE all modules. --changed mutates only lines that differ from COMMIT. Results are in
// reports/mutation; the next run tests again only what the changes of source and tests concern, and
// --force everything. Survivors are printed with their line.
import { spawnSync } from 'node:child_process'
import { globSync, rmSync } from 'node:fs'
import { relative } from 'node:path'
import { parseArgs } from 'node:util'
import { MODULES } from './mutation/modules.mjs'

/** Of fewer mutants a score says nothing. */
const SCORED_MIN = 10
/**
 * Beside load a run of seconds takes minutes. Loops without an end are counted, and end before
 * that.
 */
const TIMEOUT_MS = 60_000

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { changed: { type: 'string' }, force: { type: 'boolean', default: false } },
})
const lines = values.changed === undefined ? null : readChangedLines(values.changed)
const scores = []
for (const name of selectModules(positionals)) {
  const mutate = selectFiles(MODULES[name].mutate)
  if (mutate.length > 0) scores.push(await testModule(name, mutate))
}
if (scores.length > 0) console.table(scores)
else console.log('No line of a measured module differs: nothing to mutate.')
process.exitCode = scores.some(({ result }) => result === 'too low') ? 1 : 0

function selectModules(names) {
  const unknown = names.filter(name => MODULES[name] === undefined)
  if (unknown.length > 0) {
    fail(`Unknown: ${unknown.join(', ')}. The modules are ${Object.keys(MODULES).join(', ')}.`)
  }
  return names.length > 0 ? names : Object.keys(MODULES)
}

/** Returns the files of a module, or their changed lines as `file:first-last`. */
function selectFiles(patterns) {
  const files = globSync(patterns)
  if (files.length === 0) fail(`No file matches ${patterns.join(', ')}.`)
  return lines === null ? files : lines.filter(({ file }) => files.includes(file)).map(toRange)
}

function toRange({ file, first, last }) {
  return `${file}:${first}-${last}`
}

/** Returns the lines that differ from a commit, except those that were only removed. */
function readChangedLines(commit) {
  const { status, stdout, stderr } = spawnSync(
    'git',
    ['diff', '--unified=0', '--no-color', '--no-ext-diff', commit, '--', 'src'],
    { encoding: 'utf8', maxBuffer: 2 ** 28 },
  )
  if (status !== 0) fail(stderr)
  let file = ''
  return stdout.split('\n').flatMap(line => {
    file = /^\+\+\+ b\/(.+)/.exec(line)?.[1] ?? file
    const [, start, count = '1'] = /^@@ \S+ \+(\d+)(?:,(\d+))? @@/.exec(line) ?? []
    if (start === undefined || count === '0') return []
    return [{ file, first: Number(start), last: Number(start) + Number(count) - 1 }]
  })
}

async function testModule(name, mutate) {
  const startedAt = performance.now()
  // Loaded late: most commits have nothing to mutate.
  const { Stryker } = await import('@stryker-mutator/core')
  const { tests, floor, ignored = [] } = MODULES[name]
  process.env.EV_MUTATION_TESTS = JSON.stringify(tests)
  const results = await new Stryker({
    testRunner: 'vitest',
    plugins: ['@stryker-mutator/vitest-runner'],
    vitest: { configFile: 'tools/mutation/vitest.config.mjs', related: false },
    mutate,
    mutator: { excludedMutations: ignored },
    concurrency: 1,
    timeoutMS: TIMEOUT_MS,
    // Files of one run do not belong to the next: a run of changed lines keeps no results.
    incremental: lines === null,
    incrementalFile: `reports/mutation/${name}.json`,
    force: values.force,
    tempDirName: `.stryker-tmp/${name}`,
    ignorePatterns: ['.stryker-tmp', 'reports', 'dist', 'docs', 'packages', 'coverage'],
    // Stryker reads it with the API of TypeScript, which version 7 does not have.
    tsconfigFile: 'none.json',
    reporters: ['progress-append-only'],
    allowEmpty: true,
  }).runMutationTest()
  rmSync(`.stryker-tmp/${name}`, { recursive: true, force: true })
  for (const line of results.filter(isSurvivor).map(describe).toSorted()) console.log(line)
  return summarize(name, results, floor, performance.now() - startedAt)
}

function isSurvivor({ status }) {
  return status === 'Survived' || status === 'NoCoverage'
}

function isDetected({ status }) {
  return status === 'Killed' || status === 'Timeout'
}

function describe({ status, fileName, location, mutatorName, replacement }) {
  const { line, column } = location.start
  const place = `${relative('.', fileName)}:${line}:${column}`
  const what = status === 'Survived' ? 'not detected' : 'not executed'
  return `${place} ${what}: ${mutatorName} ${JSON.stringify(replacement)}`
}

/** Mutants that cannot be loaded, or are ignored with a reason, do not count. */
function summarize(module, results, floor, tookMs) {
  const detected = results.filter(isDetected).length
  const survivors = results.filter(isSurvivor).length
  const mutants = detected + survivors
  const score = mutants === 0 ? 100 : (100 * detected) / mutants
  const isTooLow = score < floor && mutants >= SCORED_MIN
  return {
    module,
    mutants,
    survivors,
    score: Number(score.toFixed(1)),
    floor,
    seconds: Math.round(tookMs / 1_000),
    result: isTooLow ? 'too low' : 'good',
  }
}

function fail(message) {
  console.error(message.trim())
  process.exit(2)
}
