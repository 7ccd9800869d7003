/** What may go wrong through a fault of the caller or of ours; never what DNS or a mail server told us. */
export type ErrorCode =
  | 'usage'
  | 'bad_address'
  | 'bad_input'
  | 'no_input'
  | 'cannot_write'
  | 'io'
  | 'bad_config'
  | 'interrupted'
  | 'internal'

/** The one error class of ev: a closed `code`, a sentence for people, and below it the `cause`. */
export class EvError extends Error {
  override readonly name = 'EvError'
  readonly code: ErrorCode

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.code = code
  }
}

/**
 * The text of anything thrown. Libraries also hand out plain objects with a message, and errors with a code alone, such
 * as that of several addresses that refuse a connection.
 */
export function errorMessage(thrown: unknown): string {
  if (typeof thrown !== 'object' || thrown === null) return String(thrown)
  const { message, code } = thrown as { readonly message?: unknown; readonly code?: unknown }
  if (typeof message === 'string' && message !== '') return message
  if (typeof code === 'string') return code
  return thrown instanceof Error ? thrown.message : String(thrown)
}

/** What `run` gives, or `fallback` when the signal aborts first; `run` itself goes on. */
export function orOnAbort<T, F>(
  run: Promise<T>,
  signal: AbortSignal | undefined,
  fallback: F,
): Promise<T | F> {
  if (signal === undefined) return run
  if (signal.aborted) return Promise.resolve(fallback)
  return new Promise((resolve, reject) => {
    const giveUp = () => resolve(fallback)
    signal.addEventListener('abort', giveUp, { once: true })
    run.then(resolve, reject).finally(() => signal.removeEventListener('abort', giveUp))
  })
}
