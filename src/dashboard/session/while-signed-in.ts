import type { Context } from 'hono'
import { SECOND } from '../../base/clock.ts'
import { startLoop } from '../../base/loop.ts'
import type { DashboardParts, Env } from '../parts.ts'
import { userOf } from './signed-in.ts'

/** Somebody who was signed out elsewhere sees no more after so long. */
const LOOK_EVERY_MS = 15 * SECOND

/** Passes on what comes, for as long as the session lasts: what goes on for hours would else outlive it. */
export function whileSignedIn(
  c: Context<Env>,
  parts: DashboardParts,
  body: ReadableStream<Uint8Array>,
): ReadableStream<Uint8Array> {
  const over = new AbortController()
  const end = () => void watch.stop()
  const watch = startLoop({
    ...{ name: 'the check of a dashboard session', clock: parts.clock, log: parts.log },
    ...{ everyMs: LOOK_EVERY_MS, startAfterMs: LOOK_EVERY_MS },
    async run() {
      if ((await userOf(c, parts)) !== null) return
      end()
      over.abort(new Error('the session is over'))
    },
  })
  return body.pipeThrough(new TransformStream({ flush: end, cancel: end }), { signal: over.signal })
}
