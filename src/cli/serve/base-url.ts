import { ensureSetting, getSetting } from '../../cluster/cluster-settings.ts'
import { type Database, isStorageError } from '../../db/database.ts'
import { type Clock, SECOND, sleep } from '../../platform/clock.ts'
import { errorMessage } from '../../platform/error.ts'
import type { Log } from '../../platform/log.ts'

export type OwnAddress = {
  /** As the operator gave it; null: not at all. */
  readonly given: string | null
  /** As it follows from where we listen. */
  readonly byItself: string
}

/**
 * The address of the service stands in events, whoever of those that share a database writes them. One that an operator
 * gave holds for all; else it is that of the service which began last.
 */
export async function agreeOnBaseUrl(
  database: Database,
  { given, byItself }: OwnAddress,
  log: Log,
): Promise<string> {
  const held = await getSetting(database, 'base-url')
  if (given === null && held === null) {
    await ensureSetting(database, 'base-url-by-itself', byItself)
    return byItself
  }
  if (given === null || given === held) return held as string
  await ensureSetting(database, 'base-url', given)
  if (held !== null) {
    log.warn(
      'the address of the service has changed: others go by the new one when they start anew',
      {
        ...{ before: held, now: given },
      },
    )
  }
  return given
}

/** The address that services agreed upon; waits for the first of them. Null: told to stop before. */
export async function baseUrlOfService(
  database: Database,
  o: { clock: Clock; log: Log; stopping: AbortSignal; pollMs?: number },
): Promise<string | null> {
  const { clock, log, stopping, pollMs = POLL_MS } = o
  for (let looks = 0; !stopping.aborted; looks++) {
    const held = await agreedBaseUrl(database, log)
    if (held !== null) return held
    if (looks === 0) log.info('no “ev serve” has used this database yet: waiting for the first one')
    await sleep(clock, pollMs, stopping)
  }
  return null
}

/** Whoever waits waits for a server that is away, too. */
async function agreedBaseUrl(database: Database, log: Log): Promise<string | null> {
  try {
    return (
      (await getSetting(database, 'base-url')) ?? (await getSetting(database, 'base-url-by-itself'))
    )
  } catch (error) {
    if (!isStorageError(error)) throw error
    log.warn('the database cannot be asked now: trying again', { why: errorMessage(error) })
    return null
  }
}

/** How often is looked for the address of the first service. */
const POLL_MS = SECOND
