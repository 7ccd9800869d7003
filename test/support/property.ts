import fc from 'fast-check'

/**
 * How many random cases a test tries: a tenth of `count` in `npm test`, all of them when
 * EV_TEST_ALL is 1, as `npm run test:all` sets it.
 */
export function runs(count: number): number {
  return process.env.EV_TEST_ALL === '1' ? count : Math.ceil(count / SHARE)
}

const SHARE = 10

const CODE_POINT_MAX = 0x10ffff
const FIRST_SURROGATE = 0xd800
const SURROGATES = 0x800

/** What fast-check does without a `numRuns` of its own. */
const RUNS_DEFAULT = 100

/**
 * One seed for all properties of a run, so that EV_TEST_SEED=<the seed a failure prints> repeats
 * it. Without the variable fast-check takes a seed by itself, and prints that one.
 */
function seedFromEnv(text = process.env.EV_TEST_SEED): { seed?: number } {
  if (text === undefined || text === '') return {}
  const seed = Number(text)
  if (!Number.isInteger(seed)) throw new Error(`EV_TEST_SEED is no whole number: ${text}`)
  return { seed }
}

fc.configureGlobal({ ...seedFromEnv(), numRuns: runs(RUNS_DEFAULT) })

/**
 * One character of any text: mostly of ASCII and of the first pages, controls included, and from
 * all of Unicode. fast-check's own unit `binary` takes a second of processor time in each file.
 */
export const anyCharacter = fc
  .oneof(
    { weight: 2, arbitrary: fc.nat(0x7f) },
    { weight: 1, arbitrary: fc.nat(0x2fff) },
    { weight: 2, arbitrary: fc.nat(CODE_POINT_MAX - SURROGATES) },
  )
  .map(n => String.fromCodePoint(n < FIRST_SURROGATE ? n : n + SURROGATES))

/** fast-check with the seed and the number of cases of this run: import it from here only. */
export { fc }
