import type { Context } from 'hono'
import { SECOND } from '../../platform/clock.ts'
import { startLoop } from '../../platform/loop.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import { userOf } from './signed-in.ts'

/** Somebody who was signed out elsewhere sees no more after so long. */
const POLL_INTERVAL_MS = 15 * SECOND

/** Passes on what comes, for as long as the session lasts: what goes on for hours would else outlive it. */
export function whileSignedIn(
  c: Context<Env>,
  deps: DashboardDeps,
  body: ReadableStream<Uint8Array>,
): ReadableStream<Uint8Array> {
  const over = new AbortController()
  const end = () => void watch.stop()
  const watch = startLoop({
    ...{ name: 'the check of a dashboard session', clock: deps.clock, log: deps.log },
    ...{ everyMs: POLL_INTERVAL_MS, startAfterMs: POLL_INTERVAL_MS },
    async run() {
      if ((await userOf(c, deps)) !== null) return
      end()
      over.abort(new Error('the session is over'))
    },
  })
  return body.pipeThrough(new TransformStream({ flush: end, cancel: end }), { signal: over.signal })
}
