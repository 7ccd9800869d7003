import { setImmediate, setTimeout } from 'node:timers/promises'
import { areStatementsOpen, statementsAnswered } from './statements.ts'

/** Runs every promise that can continue without a timer, and every statement of PostgreSQL. */
export async function drainEventLoop(turns = TURNS): Promise<void> {
  const endAt = performance.now() + STATEMENTS_MAX_MS
  for (let turn = 0; turn < turns; turn++) {
    if (areStatementsOpen() && performance.now() < endAt) {
      await statementsAnswered(endAt - performance.now())
      turn = 0
    }
    await setImmediate()
  }
}

/** Only ends the wait for a statement that waits for a lock of the test. */
const STATEMENTS_MAX_MS = 200

/** More turns than any chain of promises between two timers needs. */
const TURNS = 12

/**
 * Waits until a condition holds: checks it in each turn of the event loop at first, then every few
 * milliseconds. Throws after `timeoutMs`, which only ends tests that cannot pass.
 */
export async function waitUntil(
  condition: () => boolean | Promise<boolean>,
  timeoutMs = TIMEOUT_MS,
): Promise<void> {
  const endAt = performance.now() + timeoutMs
  for (let looks = 0; !(await condition()); looks++) {
    if (performance.now() > endAt) throw new Error(`The condition did not hold in ${timeoutMs} ms`)
    if (looks < EAGER_LOOKS) await setImmediate()
    else await setTimeout(POLL_INTERVAL_MS)
  }
}

const TIMEOUT_MS = 55_000
const EAGER_LOOKS = 200
const POLL_INTERVAL_MS = 5
