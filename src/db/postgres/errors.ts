/**
 * Whether the server is unavailable: connections are refused, reset or exhausted, it is starting,
 * stopping or too slow, its disk is full, or it is read-only, as a standby is until it is promoted.
 * SQLSTATE classes 08, 53, 57 and 58, and single codes (PostgreSQL manual, Appendix A), and socket
 * errors.
 */
export const isOutage = (error: unknown) => OUTAGES.test(codeOf(error)) || isCutOff(error)

/** Whether a transaction was rolled back for a conflict with another one. Retry it immediately. */
export const isConflict = (error: unknown) => /^(40001|40P01|55P03)$/.test(codeOf(error))

const OUTAGES =
  /^(0A000|08\w{3}|53\w{3}|57(014|P0\d)|58\w{3}|25(006|P0[34])|E(CONNREFUSED|CONNRESET|PIPE|TIMEDOUT|HOSTUNREACH|NETUNREACH|NOTFOUND|AI_AGAIN)|EAI_AGAIN)$/

/**
 * Whether a server refused a statement because it is a standby: to write (25006), or to read an
 * unlogged table (0A000). A new connection may lead to the server that was promoted.
 */
export const isReadOnly = (error: unknown) => /^(25006|0A000)$/.test(codeOf(error))

/** Errors of pg itself have no code. */
const isCutOff = (error: unknown) =>
  error instanceof Error &&
  /^(Connection terminated|timeout (exceeded when trying to connect|expired)|Query read timeout|Client (was closed|has encountered a connection error))/.test(
    error.message,
  )

/** Returns the driver's error code: `SQLITE_BUSY`, an SQLSTATE, `ECONNRESET`; '' if it has none. */
export const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : ''
