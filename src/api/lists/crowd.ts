import type { Context, MiddlewareHandler } from 'hono'
import { ConnectionSemaphore } from '../../engine/probe/connection-semaphore.ts'
import type { Env } from '../context.ts'
import { ApiError } from '../errors/api-error.ts'

/** A body that is larger than this counts; one of the largest is ten times its size while it is read. */
export const LARGE_BYTES = 1024 * 1024
/** So many at a time are stored one after the other all the same; more would only fill the memory, or the disk. */
export const LARGE_MAX = 8
/** Large bodies that are parsed and stored at a time: 50,000 strings and their rows take 15 MB, the bytes of a body 1.5. */
const IMPORTS_MAX = 1

/**
 * Refuses large lists while there are so many of them under way, before anything of them is read. Bodies are received at
 * the same time, so that a slow client holds up nobody, and wait for their turn to be parsed.
 */
export function limitConcurrency(): MiddlewareHandler<Env> {
  let underWay = 0
  const imports = new ConnectionSemaphore(IMPORTS_MAX)
  return async (c, next) => {
    if (!isLarge(c)) return next()
    if (underWay >= LARGE_MAX) {
      throw new ApiError('service_unavailable', 'Several large lists are being taken: try again', {
        retryAfterS: RETRY_S,
      })
    }
    underWay++
    let releaseSlot = () => {}
    c.set('importTurn', async () => {
      releaseSlot = await imports.take()
    })
    try {
      await next()
    } finally {
      releaseSlot()
      underWay--
    }
  }
}

/** 50,000 addresses take about a second. */
const RETRY_S = 2

/** What does not say how long it is may be of any length. */
function isLarge({ req }: Context<Env>): boolean {
  const length = req.header('Content-Length')
  return length === undefined || Number(length) > LARGE_BYTES
}
