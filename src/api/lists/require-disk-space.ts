import type { MiddlewareHandler } from 'hono'
import { MINUTE, SECOND } from '../../platform/clock.ts'
import type { Env } from '../context.ts'
import { ApiError } from '../errors/api-error.ts'
import { isAnswered } from '../middleware/idempotency.ts'
import type { Service } from '../service.ts'
import { getState } from '../state.ts'

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
