import type { Contents } from '../maintenance/copy-file.ts'
import { pluralize } from '../platform/format.ts'

/** Formats the row counts of a backup in three lines. */
export function contentsText(contents: Contents): string {
  const { accounts, keys, webhooks, lists, rows, verifications, answers } = contents
  return `  ${pluralize(accounts, 'account')} with ${pluralize(keys, 'key')} and ${pluralize(webhooks, 'webhook')}
  ${pluralize(lists, 'list')} of ${pluralize(rows, 'row')}
  ${pluralize(verifications, 'verification')} in the history, ${pluralize(answers, 'cached answer')}`
}
