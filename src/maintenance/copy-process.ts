import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { EvError } from '../platform/error.ts'
import type { Contents } from './copy-file.ts'
import type { CopyFault, CopyReport } from './copy-worker.ts'

type CopyTask = {
  /** The copy, which exists and is empty, or the file to check. */
  readonly file: string
  /** `sqlite:FILE` to copy; null to only check `file`. */
  readonly databaseUrl: string | null
}

/** The program beside this file: copy-worker.ts in src, copy-worker.js in dist. */
const PROGRAM = fileURLToPath(new URL(`./copy-worker${import.meta.url.slice(-3)}`, import.meta.url))

/**
 * Copies a database and checks the integrity of the copy in another process: SQLite blocks its
 * thread for as long as that takes, and this process must answer Ctrl-C. Returns the row counts.
 * Throws EvError('io') for a damaged copy, the error of SQLite or the system, and the reason of
 * `signal`.
 */
export async function runCopyProcess(
  { file, databaseUrl }: CopyTask,
  signal: AbortSignal,
): Promise<Contents> {
  signal.throwIfAborted()
  const args = databaseUrl === null ? [file] : [file, databaseUrl]
  const child = fork(PROGRAM, args, { execArgv: [], stdio: ['ignore', 'ignore', 'ignore', 'ipc'] })
  const { promise: ended, resolve, reject } = Promise.withResolvers<NodeJS.Signals | null>()
  let report: CopyReport | null = null
  child.on('message', message => {
    report = message as CopyReport
  })
  child.on('error', reject)
  child.on('close', (_, endedBy) => resolve(endedBy))
  // It only reads the database, and its caller deletes the copy.
  const kill = () => child.kill('SIGKILL')
  signal.addEventListener('abort', kill, { once: true })
  try {
    return contentsIn(report ?? (await ended.then(endedBy => report ?? missing(endedBy))))
  } finally {
    signal.removeEventListener('abort', kill)
    signal.throwIfAborted()
  }
}

function contentsIn(report: CopyReport): Contents {
  if ('contents' in report) return report.contents
  const { fault, code } = report
  throw code === null ? new EvError('io', fault) : Object.assign(new Error(fault), { code })
}

/** A terminal sends Ctrl-C to both processes. */
function missing(endedBy: NodeJS.Signals | null): CopyFault {
  if (endedBy === 'SIGINT') {
    throw new EvError('interrupted', 'Interrupted. Nothing was changed.')
  }
  const fault = `the process that copies the database was ended by ${endedBy ?? 'an error'}`
  return { fault, code: 'ended' }
}
