import { isOutage } from '../db/postgres/errors.ts'
import { type ErrorCode, EvError, errorMessage } from '../platform/error.ts'
import { OperationError } from '../platform/operation-error.ts'
import type { CliContext } from './context.ts'
import { operationSentence } from './operation-sentence.ts'

/** What ev exits with, after sysexits.h where that has a word for it. */
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

/** Says an error as a sentence on stderr and gives the code to exit with; the stack only when debugging. */
export function reportError(context: CliContext, thrown: unknown, debug: boolean): number {
  const error = toEvError(thrown)
  context.stderr.write(`ev: ${error.message}\n`)
  if (debug) {
    context.stderr.write(`${error.stack}\n`)
    if (error.cause !== undefined) context.stderr.write(`caused by: ${stackOf(error.cause)}\n`)
  }
  return EXIT_CODES[error.code]
}

function toEvError(thrown: unknown): EvError {
  if (thrown instanceof EvError) return thrown
  if (thrown instanceof OperationError) return operationSentence(thrown)
  return databaseFault(thrown) ?? internalFault(thrown)
}

/** What befalls the database midway: a full disk, a damaged file, another writer that does not end. */
function databaseFault(thrown: unknown): EvError | null {
  const code = thrown instanceof Error && 'code' in thrown ? String(thrown.code) : ''
  if (isOutage(thrown)) {
    const sentence = `The database cannot be used any longer: ${errorMessage(thrown)}. Look whether its server runs and may be reached from here (“ev doctor” tells), and try again.`
    return new EvError('io', sentence, { cause: thrown })
  }
  if (!code.startsWith('SQLITE_')) return null
  const remedy = /^SQLITE_(CORRUPT|NOTADB)/.test(code)
    ? 'The file is damaged: move it away, or name another place with --data-dir.'
    : 'Set that right, and the same command goes on: nothing that was found out is lost.'
  const sentence = `The database cannot be used any longer: ${errorMessage(thrown)}. ${remedy}`
  return new EvError('io', sentence, { cause: thrown })
}

const internalFault = (cause: unknown) =>
  new EvError(
    'internal',
    `Something went wrong inside ev: ${errorMessage(cause)}. Please report it, with what --debug prints.`,
    { cause },
  )

const stackOf = (cause: unknown) => (cause instanceof Error ? cause.stack : String(cause))

/**
 * Ends the run when the output cannot be written: its reader has left, or the disk is full. Returns a
 * function that removes these listeners, and those that a command has added since.
 */
export function watchOutput(context: CliContext, debug: boolean): () => void {
  const { stdout, stderr } = context
  const before = new Set([...stdout.listeners('error'), ...stderr.listeners('error')])
  const endRun = (cause: NodeJS.ErrnoException) => {
    // `ev … | head -1`: who reads has had enough, and nobody needs to be told.
    if (cause.code === 'EPIPE') context.exit(EXIT_CODES.io)
    const sentence = `The output cannot be written: ${cause.message}. Send it elsewhere; what was found out of a list is kept.`
    context.exit(reportError(context, new EvError('cannot_write', sentence, { cause }), debug))
  }
  // Progress that nobody reads is no reason to stop.
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
