import type { MiddlewareHandler } from 'hono'
import type { Env } from '../context.ts'
import { idempotent } from '../middleware/idempotency.ts'
import { type GuardRule, requireKey } from '../middleware/require-key.ts'
import type { Service } from '../service.ts'
import { sandboxDelay } from './sandbox.ts'

/** Largest body of a single verification, in bytes: an address has 254 octets. */
export const SINGLE_BODY_MAX = 16 * 1024
/** One address, or ten of them, may be cached, and are then answered without credits. */
export const SINGLE_BODY = { bodyMax: SINGLE_BODY_MAX, freeBodyMax: SINGLE_BODY_MAX } as const
/**
 * The largest valid batch: 50,000 addresses of 254 octets with quotes and commas have 13 MB, plus
 * their IDs.
 */
export const LIST_BODY_MAX = 16 * 1024 * 1024

/**
 * Middleware of all verification routes, and of one route. A form has a fingerprint only after it
 * was read.
 */
export function verifyMiddleware(
  service: Service,
  rule: GuardRule,
  ...own: readonly MiddlewareHandler<Env>[]
): MiddlewareHandler<Env>[] {
  const fingerprintLater = rule.body === 'stream'
  const delay: MiddlewareHandler<Env> = async (c, next) => {
    if (c.get('sandbox')) await sandboxDelay(c, service.clock)
    await next()
  }
  return [...requireKey(service, rule), ...own, delay, idempotent(service, { fingerprintLater })]
}

/** Casts a stored response, whose body has no static type; tests check it against its schema. */
export const unchecked = (answer: Promise<Response>) => answer as Promise<never>
