import { EvApiError, EvConnectionError } from '../client/error.ts'
import { isOutage } from '../db/postgres/errors.ts'
import { type ErrorCode, EvError, errorMessage } from '../platform/error.ts'
import { OperationError } from '../platform/operation-error.ts'
import { sanitizeText, toSentence } from '../platform/text.ts'
import type { CliContext } from './context.ts'
import { describeServiceError, toCliError } from './operation-errors.ts'
import { printMessage } from './print.ts'

/** Exit codes by error code, from sysexits.h where it defines one. */
export const EXIT_CODES: Readonly<Record<ErrorCode, number>> = {
  usage: 64,
  bad_address: 65,
  bad_input: 65,
  no_input: 66,
  internal: 70,
  cannot_write: 73,
  io: 74,
  bad_config: 78,
  interrupted: 130,
}

/** Prints an error to stderr, with its stack when debugging, and returns the exit code. */
export function reportError(context: CliContext, thrown: unknown, debug: boolean): number {
  const error = toEvError(thrown)
  printMessage(context, 'error', error.message)
  if (debug) {
    context.stderr.write(`${error.stack}\n`)
    if (error.cause !== undefined) context.stderr.write(`caused by: ${stackOf(error.cause)}\n`)
  }
  return EXIT_CODES[error.code]
}

function toEvError(thrown: unknown): EvError {
  if (thrown instanceof EvError) return thrown
  if (thrown instanceof OperationError) return toCliError(thrown)
  return serviceFault(thrown) ?? databaseFault(thrown) ?? fileFault(thrown) ?? internalFault(thrown)
}

/** Converts the errors of a command that runs on a service. */
function serviceFault(thrown: unknown): EvError | null {
  if (thrown instanceof EvConnectionError) {
    const sentence = `The service did not respond: ${toSentence(sanitizeText(thrown.message, 500))} Check --url.`
    return new EvError('io', sentence, { cause: thrown })
  }
  if (!(thrown instanceof EvApiError)) return null
  const { status, requestId } = thrown
  const id = requestId === null || status < 500 ? '' : ` Request ${sanitizeText(requestId)}.`
  const sentence = `${sanitizeText(describeServiceError(thrown), 500)}${id}`
  const code = thrown.code === 'invalid_email' ? 'bad_address' : codeOfStatus(status)
  return new EvError(code, sentence, { cause: thrown })
}

/** The key belongs to the configuration; a limit or a failure of the service may pass. */
function codeOfStatus(status: number): ErrorCode {
  if (status === 401 || status === 403) return 'bad_config'
  if (status === 404 || status === 410) return 'no_input'
  return status === 429 || status >= 500 || status < 400 ? 'io' : 'usage'
}

/** Converts database failures: a full disk, a damaged file, a lock that is never released. */
function databaseFault(thrown: unknown): EvError | null {
  const code = thrown instanceof Error && 'code' in thrown ? String(thrown.code) : ''
  if (isOutage(thrown)) {
    const sentence = `The database is not available: ${errorMessage(thrown)}. Check that its server is running and reachable from this machine, for example with "ev doctor", and try again.`
    return new EvError('io', sentence, { cause: thrown })
  }
  if (!code.startsWith('SQLITE_')) return null
  const remedy = /^SQLITE_(CORRUPT|NOTADB)/.test(code)
    ? 'The file is damaged: move it away, or set another directory with --data-dir.'
    : 'Fix the cause and run the same command again to resume. All stored results are kept.'
  const sentence = `The database failed: ${errorMessage(thrown)}. ${remedy}`
  return new EvError('io', sentence, { cause: thrown })
}

/** Converts the errors of the file system that name a file. */
function fileFault(thrown: unknown): EvError | null {
  if (!(thrown instanceof Error && 'syscall' in thrown && 'path' in thrown)) return null
  const path = sanitizeText(String(thrown.path), PATH_LENGTH_MAX)
  const sentence = `${path} cannot be used: ${errorMessage(thrown)}. Correct the path or its permissions.`
  return new EvError('io', sentence, { cause: thrown })
}

/** Longer paths are not allowed on Linux. */
const PATH_LENGTH_MAX = 4_096

const internalFault = (cause: unknown) =>
  new EvError(
    'internal',
    `Internal error: ${errorMessage(cause)}. Please report it with the output of --debug.`,
    { cause },
  )

const stackOf = (cause: unknown) => (cause instanceof Error ? cause.stack : String(cause))

/**
 * Exits when the output cannot be written because its reader has closed the pipe or the disk is
 * full. Returns a function that removes these listeners and those that a command has added since.
 */
export function watchOutput(context: CliContext, debug: boolean): () => void {
  const { stdout, stderr } = context
  const before = new Set([...stdout.listeners('error'), ...stderr.listeners('error')])
  const endRun = (cause: NodeJS.ErrnoException) => {
    // In `ev … | head -1` the reader closes the pipe on purpose, so this needs no message.
    if (cause.code === 'EPIPE') context.exit(EXIT_CODES.io)
    const sentence = `The output cannot be written: ${errorMessage(cause)}. Write it to another place. Stored results of a list are kept.`
    context.exit(reportError(context, new EvError('cannot_write', sentence, { cause }), debug))
  }
  // A command continues when its progress output has no reader.
  const ignore = () => {}
  stdout.on('error', endRun)
  stderr.on('error', ignore)
  return () => {
    for (const output of [stdout, stderr]) {
      for (const listener of output.listeners('error')) {
        if (!before.has(listener)) output.off('error', listener as (cause: Error) => void)
      }
    }
  }
}
