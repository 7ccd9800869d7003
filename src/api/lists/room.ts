import type { MiddlewareHandler } from 'hono'
import { MINUTE, SECOND } from '../../platform/clock.ts'
import type { Env } from '../context.ts'
import { ApiError } from '../errors/api-error.ts'
import { isAnswered } from '../middleware/idempotency.ts'
import type { Service } from '../service.ts'
import { stateOf } from '../state.ts'

/**
 * Refuses lists while the disk is low: what is left is for the results of lists that were taken. An answer that is kept
 * for an Idempotency-Key is given all the same.
 */
export function roomOnDisk(service: Service): MiddlewareHandler<Env> {
  return async (c, next) => {
    const { isLow } = await service.disk()
    if (!isLow || (await isAnswered(c, service))) return next()
    stateOf(service).metrics.refused('disk')
    throw new ApiError(
      'insufficient_storage',
      'The disk of the service is almost full: new lists are refused until there is room. Everything else works.',
      { retryAfterS: MINUTE / SECOND },
    )
  }
}
