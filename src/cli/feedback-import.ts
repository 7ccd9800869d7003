import { createReadStream } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { listAccounts } from '../accounts/account-store.ts'
import { type Database, openDatabase } from '../db/database.ts'
import { FEEDBACK_KINDS, type FeedbackKind } from '../feedback/feedback.ts'
import { type FeedbackBatch, readFeedback } from '../feedback/import-feedback.ts'
import { recordFeedback } from '../feedback/record-feedback.ts'
import { EvError, errorMessage } from '../platform/error.ts'
import { pluralize } from '../platform/format.ts'
import { sanitizeText } from '../platform/text.ts'
import { selectAccount } from './accounts.ts'
import { type CliContext, inCwd } from './context.ts'
import { databaseUrl } from './database.ts'
import { printJson, printText } from './print.ts'
import { readConfig } from './settings.ts'

type ImportFlags = {
  readonly account?: string
  readonly kind?: string
  readonly json?: boolean
  readonly [setting: string]: unknown
}

/** Runs `ev feedback import` and returns the exit code. */
export async function importCommand(
  context: CliContext,
  path: string,
  flags: ImportFlags,
): Promise<number> {
  const config = readConfig(context, flags)
  const kind = parseKind(flags.kind)
  const database = await openDatabase(databaseUrl(config), context.clock)
  try {
    const accountId = await findOwner(database, flags.account)
    const counts = { recorded: 0, duplicates: 0, rejected: 0, ignored: 0 }
    let firstError: string | null = null
    for await (const { items, ignored } of readAll(context, path, kind)) {
      const done = await recordFeedback({ database }, { accountId, source: 'import', items })
      counts.recorded += done.recorded
      counts.duplicates += done.duplicates
      counts.rejected += done.rejected.length
      counts.ignored += ignored
      firstError ??= done.rejected[0]?.error ?? null
    }
    if (flags.json) printJson(context, { ...counts, first_error: firstError })
    else printText(context, summary(counts, firstError))
    return 0
  } finally {
    await database.close()
  }
}

/** Returns the ID of the owner of feedback: without accounts, '' for lists of `ev bulk`. */
export async function findOwner(database: Database, account: string | undefined): Promise<string> {
  const accounts = await listAccounts(database)
  return accounts.length === 0 && account === undefined ? '' : selectAccount(accounts, account).id
}

async function* readAll(
  context: CliContext,
  path: string,
  kind: FeedbackKind | null,
): AsyncGenerator<FeedbackBatch> {
  for await (const source of openInputs(context, path)) {
    yield* readFeedback(source, { now: context.clock.now(), kind })
  }
}

function parseKind(value: string | undefined): FeedbackKind | null {
  if (value === undefined) return null
  const kind = FEEDBACK_KINDS.find(one => one === value)
  if (kind !== undefined) return kind
  throw new EvError(
    'usage',
    `--kind is "${sanitizeText(value)}"; it takes ${FEEDBACK_KINDS.join(', ')}.`,
  )
}

type Counts = Record<'recorded' | 'duplicates' | 'rejected' | 'ignored', number>

function summary(counts: Counts, firstError: string | null): string {
  const { recorded, duplicates, rejected, ignored } = counts
  const parts = [
    `Recorded ${pluralize(recorded, 'piece')} of feedback.`,
    ...(duplicates === 0 ? [] : [`${pluralize(duplicates, 'piece')} recorded before.`]),
    ...(rejected === 0 ? [] : [`${pluralize(rejected, 'piece')} rejected: ${firstError}`]),
    ...(ignored === 0
      ? []
      : [`${pluralize(ignored, 'row or message', 'rows or messages')} without feedback.`]),
  ]
  return `${parts.join('\n')}\n`
}

/** Folders of a Maildir that hold messages; `tmp` holds those that are being delivered. */
const MAILDIR_FOLDERS = ['cur', 'new']

/**
 * Yields the files to import, each as a stream: the file, stdin for `-`, the messages of a Maildir,
 * or the files of a folder in the order of their names.
 */
async function* openInputs(
  context: CliContext,
  path: string,
): AsyncGenerator<AsyncIterable<Uint8Array>> {
  if (path === '-') {
    yield context.stdin
    return
  }
  for (const file of await listFiles(inCwd(context, path), path)) yield createReadStream(file)
}

async function listFiles(path: string, shown: string): Promise<string[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [path]
    const names = await readdir(path)
    const folders = MAILDIR_FOLDERS.filter(name => names.includes(name))
    const all = await Promise.all(
      (folders.length === 0 ? ['.'] : folders).map(folder => filesIn(join(path, folder))),
    )
    return all.flat()
  } catch (cause) {
    const why = errorMessage(cause)
    throw new EvError('no_input', `${shown} cannot be read: ${why}.`, { cause })
  }
}

async function filesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true })
  return entries
    .filter(entry => entry.isFile() && !entry.name.startsWith('.'))
    .map(({ name }) => join(folder, name))
    .sort()
}
