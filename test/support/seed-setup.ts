import { randomInt } from 'node:crypto'

/** Chooses and prints the seed of the property tests, so that a failure can be repeated. */
export default function setup(): void {
  if (process.env.EV_TEST_SEED !== undefined) return
  process.env.EV_TEST_SEED = String(randomInt(2 ** 31))
  console.log(`Property tests: EV_TEST_SEED=${process.env.EV_TEST_SEED}`)
}
