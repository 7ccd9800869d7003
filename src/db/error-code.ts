/** What a driver calls a fault: `SQLITE_BUSY`, an SQLSTATE, `ECONNRESET`; empty where it does not. */
export const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : ''
