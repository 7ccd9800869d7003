import { type Kysely, sql } from 'kysely'
import { codeOf } from '../error-code.ts'
import type { Schema } from '../schema.ts'

/**
 * Whether the server is unavailable: connections are refused, reset or exhausted, it is starting,
 * stopping or too slow, or its disk is full. SQLSTATE classes 08, 53, 57 and 58 (PostgreSQL manual,
 * Appendix A), and socket errors.
 */
export const isOutage = (error: unknown) => OUTAGES.test(codeOf(error)) || isCutOff(error)

/** Whether a transaction was rolled back for a conflict with another one. Retry it immediately. */
export const isConflict = (error: unknown) => /^(40001|40P01|55P03)$/.test(codeOf(error))

const OUTAGES =
  /^(08\w{3}|53\w{3}|57(014|P0\d)|58\w{3}|25P0[34]|E(CONNREFUSED|CONNRESET|PIPE|TIMEDOUT|HOSTUNREACH|NETUNREACH|NOTFOUND|AI_AGAIN)|EAI_AGAIN)$/

/** Errors of pg itself have no code. */
const isCutOff = (error: unknown) =>
  error instanceof Error &&
  /^(Connection terminated|timeout exceeded when trying to connect|Query read timeout|Client (was closed|has encountered a connection error))/.test(
    error.message,
  )

/** The encoding of the database cannot store every address. */
export class NotUtf8 extends Error {}

/**
 * Throws NotUtf8 unless the encoding is UTF8. SQL_ASCII stores any bytes, but has no characters.
 */
export async function checkEncoding(db: Kysely<Schema>): Promise<void> {
  const { rows } = await sql<{ server_encoding: string }>`show server_encoding`.execute(db)
  const encoding = rows[0]?.server_encoding
  if (encoding !== 'UTF8') throw new NotUtf8(`its encoding is ${encoding}, and ev needs UTF8`)
}
