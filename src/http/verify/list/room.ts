import type { Context, MiddlewareHandler } from 'hono'
import { HOUR, MINUTE, SECOND } from '../../../base/clock.ts'
import { formatNumber } from '../../../base/format.ts'
import { accountLoad } from '../../../store/account/stored-rows.ts'
import type { Trx } from '../../../store/database.ts'
import type { Row } from '../../../work/submit.ts'
import type { Env } from '../../context.ts'
import { ApiError } from '../../error/api-error.ts'
import { isAnswered } from '../../guard/idempotent.ts'
import type { Service } from '../../service.ts'
import { stateOf } from '../../state.ts'

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

/** What a request adds to what its account has. */
export type Added = {
  readonly rows: number
  /** 1: a list that stays open until it is worked off. */
  readonly openLists: 0 | 1
}

/**
 * Refuses what goes beyond the concurrent jobs or the stored rows of the plan. Called before a list is stored, this
 * spares the work. Called with the transaction that has just stored it, this is exact: one such transaction runs at a
 * time. Gives how many rows may be stored; null: any number.
 */
export async function checkRoom(
  c: Context<Env>,
  service: Service,
  added: Added,
  trx?: Trx,
): Promise<number | null> {
  const { account, plan } = c.get('caller')
  const load = await accountLoad(trx ?? service.database.reader, account.id)
  const own = trx === undefined ? NOTHING : added
  const openLists = load.openLists - own.openLists
  const storedRows = load.storedRows - own.rows
  const { concurrentJobs, storedRows: rowsMax } = plan
  if (concurrentJobs !== null && added.openLists === 1 && openLists >= concurrentJobs) {
    stateOf(service).metrics.refused('concurrent-jobs')
    throw new ApiError(
      'concurrent_jobs_exceeded',
      `${formatNumber(openLists)} lists of the account are not finished, and the plan ${plan.name} allows ${formatNumber(concurrentJobs)} at a time. Wait for one to finish, or cancel one with POST /v1/jobs/{id}/cancel.`,
      { retryAfterS: MINUTE / SECOND },
    )
  }
  if (rowsMax === null || added.rows === 0) return null
  if (storedRows + added.rows > rowsMax)
    throw noRoom(c, service, storedRows, formatNumber(added.rows))
  return rowsMax - storedRows
}

const NOTHING: Added = { rows: 0, openLists: 0 }

/** The rows of a list whose length is not known, as long as they fit; throws with the first that do not. */
export async function* rowsThatFit(
  c: Context<Env>,
  service: Service,
  rows: AsyncIterable<readonly Row[]> | Iterable<readonly Row[]>,
  rowsMax: number | null,
): AsyncGenerator<readonly Row[]> {
  let count = 0
  for await (const batch of rows) {
    count += batch.length
    if (rowsMax !== null && count > rowsMax) {
      const storedRows = (c.get('caller').plan.storedRows ?? 0) - rowsMax
      throw noRoom(c, service, storedRows, `more than ${formatNumber(rowsMax)}`)
    }
    yield batch
  }
}

function noRoom(c: Context<Env>, service: Service, storedRows: number, added: string): ApiError {
  const { name, storedRows: rowsMax } = c.get('caller').plan
  stateOf(service).metrics.refused('stored-rows')
  return new ApiError(
    'stored_rows_exceeded',
    `The account stores ${formatNumber(storedRows)} rows of lists, this list has ${added}, and the plan ${name} allows ${formatNumber(rowsMax ?? 0)}. Delete lists with DELETE /v1/jobs/{id}, or wait until old lists are removed.`,
    { retryAfterS: HOUR / SECOND },
  )
}

/** 50,000 */
