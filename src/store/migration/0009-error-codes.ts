import { type Kysely, sql } from 'kysely'

/** Codes beside the sentences that say why a delivery failed and why a webhook was switched off. */
export async function errorCodes(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('webhook').addColumn('disabled_code', 'text').execute()
  for (const table of ['delivery', 'attempt']) {
    await db.schema.alterTable(table).addColumn('error_code', 'text').execute()
    // Without an answer only the sentence knew more; these rows go within seven days.
    await sql`update ${sql.table(table)} set error_code = case
      when status_code is null then 'request_failed'
      when status_code between 300 and 399 then 'redirect'
      else 'http_status' end where error is not null`.execute(db)
  }
  await sql`update webhook set disabled_code =
    case when disabled_reason like 'It answered 410%' then 'gone' else 'failing' end
    where disabled_reason is not null`.execute(db)
}
