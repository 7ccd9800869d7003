import type { Context } from 'hono'
import { SECOND } from '../../base/clock.ts'
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
  const { clock } = parts
  const over = new AbortController()
  let isRead = true
  let endWatch = () => {}
  const watch = () => {
    endWatch = clock.after(LOOK_EVERY_MS, async () => {
      // Whether somebody may still look is asked again where it could not be told.
      const isIn = await userOf(c, parts).then(
        user => user !== null,
        () => true,
      )
      if (!isIn) over.abort(new Error('the session is over'))
      else if (isRead) watch()
    })
  }
  const end = () => {
    isRead = false
    endWatch()
  }
  watch()
  return body.pipeThrough(new TransformStream({ flush: end, cancel: end }), { signal: over.signal })
}
