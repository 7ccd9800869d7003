import { type Kysely, sql } from 'kysely'
import type { Schema } from '../schema.ts'

/** A database whose encoding has not all characters: some addresses could not be stored in it. */
export class NotUtf8 extends Error {}

/** Throws NotUtf8 unless texts are stored in UTF-8. SQL_ASCII stores any bytes, but does not know their characters. */
export async function checkEncoding(db: Kysely<Schema>): Promise<void> {
  const { rows } = await sql<{ server_encoding: string }>`show server_encoding`.execute(db)
  const encoding = rows[0]?.server_encoding
  if (encoding !== 'UTF8') throw new NotUtf8(`it is in ${encoding}, and ev needs UTF8`)
}
