import type { MiddlewareHandler } from 'hono'
import type { Env } from '../context.ts'
import { idempotent } from '../middleware/idempotency.ts'
import { type GuardRule, requireKey } from '../middleware/require-key.ts'
import type { Service } from '../service.ts'
import { sandboxDelay } from './sandbox.ts'

/** Bodies of a single verification, in bytes: an address has 254 octets. */
export const SINGLE_BODY_MAX = 16 * 1024
/** One address may be remembered, and so may ten, which are smaller: both are answered without credits then. */
export const SINGLE_BODY = { bodyMax: SINGLE_BODY_MAX, freeBodyMax: SINGLE_BODY_MAX } as const
/** The largest legal batch: 50,000 addresses of 254 octets with quotes and commas are 13 MB; ids come beside them. */
export const LIST_BODY_MAX = 16 * 1024 * 1024

/** What stands before every path that verifies, and what a path has of its own. A form is known again only when it was read. */
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

/** Answers come from `commit`, whose bodies no schema knows while the program is checked; tests hold them against theirs. */
export const unchecked = (answer: Promise<Response>) => answer as Promise<never>
