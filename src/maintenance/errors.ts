import { createErrors, type LabelField } from '../platform/operation-error.ts'
import { sanitizeText } from '../platform/text.ts'

const ERRORS = {
  address_invalid: (
    { address, fault }: { readonly address: string; readonly fault: string },
    label: LabelField,
  ) => `${label('address')} is "${sanitizeText(address)}", which is not an email address. ${fault}`,
  address_in_use: ({ address, jobId, otherJobs }: InUseFacts) =>
    `${sanitizeText(address)} is in an unfinished list: ${jobId}${otherJobs === 0 ? '' : ` and ${otherJobs} more`}. Nothing was erased.`,
  database_absent: ({ file, task }: { readonly file: string; readonly task: CopyTask }) =>
    `The database ${file} does not exist, so there is nothing to ${task === 'backup' ? 'back up' : 'copy'}.`,
  database_unusable: ({ file, why }: { readonly file: string; readonly why: string }) =>
    `The database ${file} cannot be copied: ${why}.`,
  database_newer: ({ file }: { readonly file: string }) =>
    `The database ${file} was written by a newer version of ev. Use that version.`,
  data_dir_in_use: ({ dataDir, command }: InUseDirFacts) =>
    `"ev ${command}" is running in ${dataDir}, and changes that it makes during the copy would be lost. Stop it first; it resumes its lists when you start it again.`,
  backup_of_itself: ({ file }: { readonly file: string }) =>
    `${file} is the database itself. Name another file for the copy.`,
  backup_exists: ({ file }: { readonly file: string }) => `${file} already exists.`,
  backup_failed: ({ file, why }: { readonly file: string; readonly why: string }) =>
    `The database cannot be copied to ${file}: ${why}. Check that the folder exists, is writable and has enough space.`,
}

type CopyTask = 'backup' | 'migrate'

type InUseFacts = {
  readonly address: string
  /** An unfinished job that contains the address. */
  readonly jobId: string
  readonly isOfAccount: boolean
  /** Number of other unfinished jobs that contain it. */
  readonly otherJobs: number
}

type InUseDirFacts = { readonly dataDir: string; readonly command: 'serve' | 'bulk' }

type Errors = typeof ERRORS

declare module '../platform/operation-error.ts' {
  interface OperationErrors extends Errors {}
}

/** Creates the errors of backups, migrations and the erasure of an address. */
export const maintenanceError = createErrors(ERRORS)
