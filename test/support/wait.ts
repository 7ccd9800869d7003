import { setImmediate, setTimeout } from 'node:timers/promises'

/** Runs every promise that can continue without a timer. */
export async function drainEventLoop(turns = TURNS): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await setImmediate()
}

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
