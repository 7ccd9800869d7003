import { accountLoad } from '../accounts/credits/stored-rows.ts'
import type { Plan } from '../accounts/plan.ts'
import type { Database, Trx } from '../db/database.ts'
import { OperationError } from '../platform/operation-error.ts'
import type { Row } from './import/load-job.ts'

export type Owner = { readonly accountId: string; readonly plan: Plan }

/** What a request adds to what its account has. */
export type Added = {
  readonly rows: number
  /** 1: a list that stays open until it is finished. */
  readonly openLists: 0 | 1
}

export type LimitServices = {
  readonly database: Database
  /** Counts refusals by their reason. */
  readonly metrics?: { refused(limit: 'concurrent-jobs' | 'stored-rows' | 'credits'): void }
}

/**
 * Throws `concurrent_jobs_exceeded` and `stored_rows_exceeded`. Called before a list is stored, this spares the work.
 * Called with the transaction that has just stored it, this is exact: one such transaction runs at a time. Returns how
 * many rows may be stored; null: any number.
 */
export async function checkPlanLimits(
  services: LimitServices,
  { accountId, plan }: Owner,
  added: Added,
  trx?: Trx,
): Promise<number | null> {
  const load = await accountLoad(trx ?? services.database.reader, accountId)
  const own = trx === undefined ? NOTHING : added
  const openLists = load.openLists - own.openLists
  const storedRows = load.storedRows - own.rows
  const { concurrentJobs: max, storedRows: rowsMax } = plan
  if (max !== null && added.openLists === 1 && openLists >= max) {
    services.metrics?.refused('concurrent-jobs')
    throw new OperationError('concurrent_jobs_exceeded', { plan: plan.name, openLists, max })
  }
  if (rowsMax === null || added.rows === 0) return null
  if (storedRows + added.rows <= rowsMax) return rowsMax - storedRows
  throw storedRowsExceeded(services, plan, storedRows, { rows: added.rows, isMore: false })
}

const NOTHING: Added = { rows: 0, openLists: 0 }

/** The rows of a list whose length is not known, as long as they fit; throws with the first that do not. */
export async function* rowsThatFit(
  services: LimitServices,
  { plan }: Owner,
  rows: AsyncIterable<readonly Row[]> | Iterable<readonly Row[]>,
  rowsMax: number | null,
): AsyncGenerator<readonly Row[]> {
  let count = 0
  for await (const batch of rows) {
    count += batch.length
    if (rowsMax !== null && count > rowsMax) {
      const storedRows = (plan.storedRows ?? 0) - rowsMax
      throw storedRowsExceeded(services, plan, storedRows, { rows: rowsMax, isMore: true })
    }
    yield batch
  }
}

function storedRowsExceeded(
  { metrics }: LimitServices,
  { name: plan, storedRows: max }: Plan,
  storedRows: number,
  { rows, isMore }: { readonly rows: number; readonly isMore: boolean },
) {
  metrics?.refused('stored-rows')
  return new OperationError('stored_rows_exceeded', {
    ...{ plan, storedRows, rows, isMore, max: max ?? 0 },
  })
}
