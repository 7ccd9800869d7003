import { ensureSetting, getSetting } from '../../cluster/cluster-settings.ts'
import { type Database, isStorageError } from '../../db/database.ts'
import { type Clock, SECOND, sleep } from '../../platform/clock.ts'
import { errorMessage } from '../../platform/error.ts'
import type { Log } from '../../platform/log.ts'

type BaseUrlOptions = {
  /** Value of the setting; null if it is not set. */
  readonly configured: string | null
  /** Derived from the listen address. */
  readonly derived: string
}

/**
 * Returns the base URL that all members of a cluster put into events. A configured value applies to
 * all of them; otherwise it is the derived one of the service that started last.
 */
export async function shareBaseUrl(
  database: Database,
  { configured, derived }: BaseUrlOptions,
  log: Log,
): Promise<string> {
  const stored = await getSetting(database, 'base-url')
  if (configured === null && stored === null) {
    await ensureSetting(database, 'base-url-by-itself', derived)
    return derived
  }
  if (configured === null || configured === stored) return stored as string
  await ensureSetting(database, 'base-url', configured)
  if (stored !== null) {
    log.warn('the base URL has changed; other processes use the new one after a restart', {
      ...{ before: stored, now: configured },
    })
  }
  return configured
}

/** Waits until a service has stored its base URL. Returns null if `stopping` aborts first. */
export async function waitForBaseUrl(
  database: Database,
  o: { clock: Clock; log: Log; stopping: AbortSignal; pollMs?: number },
): Promise<string | null> {
  const { clock, log, stopping, pollMs = POLL_MS } = o
  for (let polls = 0; !stopping.aborted; polls++) {
    const baseUrl = await storedBaseUrl(database, log)
    if (baseUrl !== null) return baseUrl
    if (polls === 0) log.info('no "ev serve" has used this database yet; waiting for the first one')
    await sleep(clock, pollMs, stopping)
  }
  return null
}

/** Returns the base URL that services have stored in a shared database; null if there is none. */
export const findBaseUrl = async (database: Database): Promise<string | null> =>
  (await getSetting(database, 'base-url')) ?? (await getSetting(database, 'base-url-by-itself'))

/** Returns null also while the database is unavailable, so that the caller keeps waiting. */
async function storedBaseUrl(database: Database, log: Log): Promise<string | null> {
  try {
    return await findBaseUrl(database)
  } catch (error) {
    if (!isStorageError(error)) throw error
    log.warn('the database is not available; retrying', { why: errorMessage(error) })
    return null
  }
}

/** Interval between polls for the base URL of the first service. */
const POLL_MS = SECOND
