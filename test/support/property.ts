import fc from 'fast-check'

/**
 * Returns the number of random cases of a test: all of them if EV_TEST_ALL is 1, as in
 * `npm run test:all`; in `npm test` one in `share`, a tenth by default.
 */
export function runs(count: number, share = SHARE): number {
  return process.env.EV_TEST_ALL === '1' ? count : Math.ceil(count / share)
}

const SHARE = 10

/**
 * Returns the cases of a test that tries each of many: all of them if EV_TEST_ALL is 1; in
 * `npm test` every `share`-th one, beginning with `first`.
 */
export const sampled = <T>(cases: readonly T[], share: number, first = 0): readonly T[] =>
  process.env.EV_TEST_ALL === '1' ? cases : cases.filter((_, n) => n % share === first % share)

const CODE_POINT_MAX = 0x10ffff
const FIRST_SURROGATE = 0xd800
const SURROGATES = 0x800

/** Default number of cases of fast-check. */
const RUNS_DEFAULT = 100

/**
 * Returns one seed for all properties of a run, so that EV_TEST_SEED=<the printed seed> repeats it.
 * Without the variable fast-check chooses and prints a seed.
 */
function seedFromEnv(text = process.env.EV_TEST_SEED): { seed?: number } {
  if (text === undefined || text === '') return {}
  const seed = Number(text)
  if (!Number.isInteger(seed)) throw new Error(`EV_TEST_SEED is no whole number: ${text}`)
  return { seed }
}

fc.configureGlobal({ ...seedFromEnv(), numRuns: runs(RUNS_DEFAULT) })

/**
 * Any character: mostly ASCII and the first pages, including control characters, and all of
 * Unicode. The unit `binary` of fast-check takes a second of CPU time per file.
 */
export const anyCharacter = fc
  .oneof(
    { weight: 2, arbitrary: fc.nat(0x7f) },
    { weight: 1, arbitrary: fc.nat(0x2fff) },
    { weight: 2, arbitrary: fc.nat(CODE_POINT_MAX - SURROGATES) },
  )
  .map(n => String.fromCodePoint(n < FIRST_SURROGATE ? n : n + SURROGATES))

/** fast-check with the seed and number of cases of this run: tests import it from here only. */
export { fc }
