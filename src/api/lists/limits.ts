import type { Context } from 'hono'
import { Semaphore } from '../../platform/semaphore.ts'
import { limitByAccount } from '../account-share.ts'
import type { ApiDeps } from '../api-deps.ts'
import type { Env } from '../context.ts'
import { requestError } from '../errors/request-errors.ts'
import { holdPlace } from '../middleware/admission.ts'

export type ListLimitDeps = Pick<ApiDeps, 'disk' | 'limitLargeLists' | 'metrics'>

/** Larger bodies count as large. The largest one takes ten times its size while it is read. */
export const LARGE_BYTES = 1024 * 1024
/**
 * Maximum of large bodies in flight. They are stored one after the other, so more would only fill
 * memory or disk.
 */
export const LARGE_MAX = 8
/** Those of one account, so that slow uploads of one customer leave room for others. */
export const LARGE_ACCOUNT_MAX = 5
/**
 * Large bodies that are parsed and stored at the same time: 50,000 strings and their rows take 15
 * MB, the bytes of a body 1.5 MB.
 */
const IMPORTS_MAX = 1
/** Importing 50,000 addresses takes about a second. */
const RETRY_S = 2

/**
 * Returns a function that refuses a large list while too many are in flight, before anything of it
 * is read. Bodies are received concurrently, so that a slow client blocks no other, and wait for a
 * slot to be parsed.
 */
export function createLargeListLimit(): ApiDeps['limitLargeLists'] {
  const admit = limitByAccount({
    max: LARGE_MAX,
    accountMax: LARGE_ACCOUNT_MAX,
    what: 'large lists are being imported',
    retryAfterS: RETRY_S,
  })
  const imports = new Semaphore(IMPORTS_MAX)
  return c => {
    if (!isLarge(c)) return
    const leaves = [holdPlace(c, admit(c.get('caller').account.id))]
    c.set('largeList', {
      async acquireSlot() {
        leaves.push(holdPlace(c, await imports.acquire()))
      },
      onParsed(size) {
        // A short list without a Content-Length is verified within the request, for seconds.
        if (size <= LARGE_BYTES) for (const leave of leaves) leave()
      },
    })
  }
}

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
export const requireDiskSpace =
  (service: Pick<ListLimitDeps, 'disk' | 'metrics'>) =>
  async (c: Context<Env>): Promise<void> => {
    const { isLow } = await service.disk()
    if (!isLow || c.get('replay')?.stored) return
    service.metrics.refused('disk')
    throw requestError('disk_full')
  }
