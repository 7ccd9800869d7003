import { type ErrorCode, EvError, messageOf } from '../base/error.ts'

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
export function reportError(error: unknown, debug: boolean): number {
  const known = error instanceof EvError
  const sentence = known
    ? error.message
    : `Something went wrong inside ev: ${messageOf(error)}. Please report it, with what --debug prints.`
  process.stderr.write(`ev: ${sentence}\n`)
  if (debug && error instanceof Error) {
    process.stderr.write(`${error.stack}\n`)
    if (error.cause !== undefined) process.stderr.write(`caused by: ${String(error.cause)}\n`)
  }
  return known ? EXIT_CODES[error.code] : EXIT_CODES.internal
}

/** Output that cannot be written ends the run: its reader has left, or the disk is full. */
export function watchOutput(debug: boolean): void {
  process.stdout.on('error', (cause: NodeJS.ErrnoException) => {
    // `ev … | head -1`: who reads has had enough, and nobody needs to be told.
    if (cause.code === 'EPIPE') process.exit(EXIT_CODES.io)
    const sentence = `The output cannot be written: ${cause.message}. Send it elsewhere; what was found out of a list is kept.`
    process.exit(reportError(new EvError('cannot_write', sentence, { cause }), debug))
  })
  // Progress that nobody reads is no reason to stop.
  process.stderr.on('error', () => {})
}
