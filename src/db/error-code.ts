/** Returns the driver's error code: `SQLITE_BUSY`, an SQLSTATE, `ECONNRESET`; '' if it has none. */
export const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : ''
