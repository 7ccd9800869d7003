import type { Backup } from '../../maintenance/backup.ts'
import { formatBytes, pluralize } from '../../platform/format.ts'

/** A copy that was made. */
type ShownBackup = Backup & {
  /** Without which secrets in it cannot be read; null: there is none, or it was given elsewhere. */
  readonly secretFile: string | null
}

/** What is in a copy and what to do with it, for people. */
export function backupText({ file, bytes, contents, database, secretFile }: ShownBackup): string {
  const { accounts, keys, webhooks, lists, rows, verifications, answers } = contents
  return `Copied the database to ${file}: ${formatBytes(bytes)}, read once more and whole.
  ${pluralize(accounts, 'account')} with ${pluralize(keys, 'key')} and ${pluralize(webhooks, 'webhook')}
  ${pluralize(lists, 'list')} of ${pluralize(rows, 'row')}
  ${pluralize(verifications, 'verification')} of the history, ${pluralize(answers, 'remembered answer')}

To restore it: stop every ev, remove ${database}-wal and ${database}-shm, copy this file to
${database}, and start ev.
${
  secretFile === null
    ? 'Keep with it what EV_SECRET or EV_SECRET_FILE holds, if you use webhooks: their secrets cannot be read without.'
    : `Keep with it ${secretFile}: without that the secrets of webhooks cannot be read.`
}
`
}

/** The same, for programs. */
export const backupObject = ({ file, bytes, contents, database, secretFile }: ShownBackup) => ({
  file,
  bytes,
  ...contents,
  database,
  secret_file: secretFile,
})
