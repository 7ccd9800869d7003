import type { Context, MiddlewareHandler } from 'hono'
import { ConnectionSemaphore } from '../../engine/probe/connection-semaphore.ts'
import { MINUTE, SECOND } from '../../platform/clock.ts'
import type { Env } from '../context.ts'
import { ApiError } from '../errors/api-error.ts'
import { isAnswered } from '../middleware/idempotency.ts'
import type { Service } from '../service.ts'
import { getState } from '../state.ts'

/** Larger bodies count as large. The largest one takes ten times its size while it is read. */
export const LARGE_BYTES = 1024 * 1024
/**
 * Maximum of large bodies in flight. They are stored one after the other, so more would only fill
 * memory or disk.
 */
export const LARGE_MAX = 8
/**
 * Large bodies that are parsed and stored at the same time: 50,000 strings and their rows take 15
 * MB, the bytes of a body 1.5 MB.
 */
const IMPORTS_MAX = 1

/**
 * Refuses large lists while too many are in flight, before anything of them is read. Bodies are
 * received concurrently, so that a slow client blocks no other, and wait for a slot to be parsed.
 */
export function limitConcurrency(): MiddlewareHandler<Env> {
  let inFlight = 0
  const imports = new ConnectionSemaphore(IMPORTS_MAX)
  return async (c, next) => {
    if (!isLarge(c)) return next()
    if (inFlight >= LARGE_MAX) {
      throw new ApiError(
        'service_unavailable',
        'Too many large lists are being imported. Try again.',
        {
          retryAfterS: RETRY_S,
        },
      )
    }
    inFlight++
    let releaseSlot = () => {}
    c.set('acquireImportSlot', async () => {
      releaseSlot = await imports.acquire()
    })
    try {
      await next()
    } finally {
      releaseSlot()
      inFlight--
    }
  }
}

/** Importing 50,000 addresses takes about a second. */
const RETRY_S = 2

/** A body without Content-Length can have any size, and so can a compressed one. */
function isLarge({ req }: Context<Env>): boolean {
  if (req.header('Content-Encoding') !== undefined) return true
  const length = req.header('Content-Length')
  return length === undefined || Number(length) > LARGE_BYTES
}

/**
 * Refuses lists while disk space is low: the rest is for results of accepted lists. A stored
 * response of an Idempotency-Key is still returned.
 */
export function requireDiskSpace(service: Service): MiddlewareHandler<Env> {
  return async (c, next) => {
    const { isLow } = await service.disk()
    if (!isLow || (await isAnswered(c, service))) return next()
    getState(service).metrics.refused('disk')
    throw new ApiError(
      'insufficient_storage',
      'The disk of the service is almost full. New lists are refused until space is freed. Everything else works.',
      { retryAfterS: MINUTE / SECOND },
    )
  }
}
