import type { Database, Trx } from '../db/database.ts'
import { isProviderName, type ProviderName } from './providers/providers.ts'
import type { FeedbackSourceTable } from './tables.ts'

/** A URL of an account to which an email provider sends events. */
export type FeedbackSource = Omit<FeedbackSourceTable, 'provider'> & {
  readonly provider: ProviderName
}

export async function insertSource(trx: Trx, source: FeedbackSource): Promise<void> {
  await trx.insertInto('feedback_source').values(source).execute()
}

/** Lists the sources of an account, oldest first. */
export async function listSources(
  db: Database['reader'],
  accountId: string,
): Promise<FeedbackSource[]> {
  const rows = await db
    .selectFrom('feedback_source')
    .selectAll()
    .where('account_id', '=', accountId)
    .orderBy('created_at')
    .orderBy('id')
    .execute()
  return rows.filter(isKnown)
}

/** Finds a source of any account. */
export async function findSource({ reader }: Database, id: string): Promise<FeedbackSource | null> {
  const row = await reader
    .selectFrom('feedback_source')
    .selectAll()
    .where('id', '=', id)
    .executeTakeFirst()
  return row !== undefined && isKnown(row) ? row : null
}

export async function removeSource(trx: Trx, id: string): Promise<boolean> {
  const { numDeletedRows } = await trx
    .deleteFrom('feedback_source')
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  return numDeletedRows === 1n
}

export async function setLastReceived(trx: Trx, id: string, at: number): Promise<void> {
  await trx
    .updateTable('feedback_source')
    .set({ last_received_at: at })
    .where('id', '=', id)
    .execute()
}

/** Excludes a source whose provider only a newer version knows. */
const isKnown = (row: FeedbackSourceTable): row is FeedbackSource => isProviderName(row.provider)
