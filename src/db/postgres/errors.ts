import { type Kysely, sql } from 'kysely'
import { codeOf } from '../error-code.ts'
import type { Schema } from '../schema.ts'

/**
 * The server cannot be had now, or not for this: connections that are refused, reset or used up, a server that starts,
 * stops or answers too late, a disk that is full. SQLSTATE classes 08, 53, 57, 58 of its manual, and errors of sockets.
 */
export const isOutage = (error: unknown) => OUTAGES.test(codeOf(error)) || isCutOff(error)

/** Two transactions stood in each other's way, and this one was undone: it may be run again at once. */
export const isConflict = (error: unknown) => /^(40001|40P01|55P03)$/.test(codeOf(error))

const OUTAGES =
  /^(08\w{3}|53\w{3}|57(014|P0\d)|58\w{3}|25P0[34]|E(CONNREFUSED|CONNRESET|PIPE|TIMEDOUT|HOSTUNREACH|NETUNREACH|NOTFOUND|AI_AGAIN)|EAI_AGAIN)$/

/** Where the library itself noticed, it says so only in words. */
const isCutOff = (error: unknown) =>
  error instanceof Error &&
  /^(Connection terminated|timeout exceeded when trying to connect|Query read timeout|Client (was closed|has encountered a connection error))/.test(
    error.message,
  )

/** A database whose encoding has not all characters: some addresses could not be stored in it. */
export class NotUtf8 extends Error {}

/** Throws NotUtf8 unless texts are stored in UTF-8. SQL_ASCII stores any bytes, but does not know their characters. */
export async function checkEncoding(db: Kysely<Schema>): Promise<void> {
  const { rows } = await sql<{ server_encoding: string }>`show server_encoding`.execute(db)
  const encoding = rows[0]?.server_encoding
  if (encoding !== 'UTF8') throw new NotUtf8(`it is in ${encoding}, and ev needs UTF8`)
}
