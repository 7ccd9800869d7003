import { resolve } from 'node:path'
import type { Vocabulary } from '../../formats/vocabulary/names.ts'
import type { DeduplicateBy } from '../../jobs/import/import-counter.ts'
import type { Job, Metadata } from '../../jobs/job-store.ts'
import { EvError } from '../../platform/error.ts'
import type { ListFile } from './list-file.ts'
import type { Format } from './row-text.ts'

/** Identifies a file that ev wrote, until another program changes it. */
export type FileIdentity = {
  /** Canonical path. */
  readonly path: string
  readonly size: number
  /** Time of the last change, epoch ms. */
  readonly modifiedAt: number
}

/** The options of the command that started or last resumed a job, stored with it as JSON. */
export type BulkSource = {
  /** Absolute path of the list. */
  readonly path: string
  /** Whether the path is a copy of stdin or of a URL, which is deleted when the job is finished. */
  readonly kept: boolean
  /** File name of a list that was downloaded; left out for others. */
  readonly name?: string
  /** An absolute path, or `-`. */
  readonly output: string
  /** As given; null if it is detected. */
  readonly column: string | null
  /** Name of the sheet of a workbook, as given. */
  readonly sheet: string | null
  readonly encoding: string | null
  readonly header: boolean
  /** As given; null if it is detected, left out in a job of an earlier version. */
  readonly allAddresses?: boolean | null
  readonly raw: boolean
  readonly only: string | null
  readonly split: boolean
  /** Actions of the rows that are written, as given; null or left out for all. */
  readonly action?: string | null
  /** What makes two rows the same; null if all rows are written. */
  readonly deduplicate: DeduplicateBy | null
  readonly format: Format
  /** Whose columns and words are written; null or left out for those of ev. */
  readonly vocabulary?: Vocabulary | null
  /** Whether rows keep results of other services. */
  readonly keepExternal?: boolean
  /** When the export with these results was made, as given; null or left out if it is not known. */
  readonly externalDate?: string | null
  readonly sandbox: boolean
  readonly wait: boolean
  /** Left out in a job of an earlier version, which skipped blank rows. */
  readonly countsBlankRows?: boolean
  /** Left out if there is none. */
  readonly metadata?: Metadata
  /** The files of the output; left out until it is written. */
  readonly written?: readonly FileIdentity[]
}

/** Flags that select what is verified and how the output is written; settings are separate. */
export type SourceFlags = {
  readonly output: string
  readonly column?: string
  readonly sheet?: string
  readonly encoding?: string
  readonly header?: boolean
  readonly allAddresses?: boolean
  readonly raw?: boolean
  readonly only?: string
  readonly split?: boolean
  readonly action?: string
  readonly deduplicate?: DeduplicateBy
  readonly format?: Format
  readonly vocabulary?: Vocabulary
  readonly keepExternal?: boolean
  readonly externalDate?: string
  readonly sandbox?: boolean
  readonly wait?: boolean
  readonly metadata?: Metadata
}

export function toSource({ path, kept, name, dialect }: ListFile, flags: SourceFlags): BulkSource {
  return {
    path,
    kept,
    ...(name === undefined ? {} : { name }),
    output: flags.output === '-' ? '-' : resolve(flags.output),
    column: flags.column ?? null,
    sheet: flags.sheet ?? null,
    encoding: flags.encoding ?? null,
    header: flags.header ?? true,
    allAddresses: flags.allAddresses ?? null,
    raw: flags.raw ?? false,
    only: flags.only ?? null,
    split: flags.split ?? false,
    action: flags.action ?? null,
    deduplicate: flags.deduplicate ?? null,
    format: flags.format ?? 'csv',
    vocabulary: flags.vocabulary ?? null,
    keepExternal: flags.keepExternal ?? false,
    externalDate: flags.externalDate ?? null,
    sandbox: flags.sandbox ?? false,
    wait: flags.wait ?? true,
    countsBlankRows: dialect.countsBlankRows ?? false,
    ...(hasEntries(flags.metadata) ? { metadata: flags.metadata } : {}),
  }
}

const hasEntries = (metadata: Metadata = {}) => Object.keys(metadata).length > 0

export const toFlags = ({
  only,
  action,
  column,
  sheet,
  encoding,
  deduplicate,
  allAddresses,
  vocabulary,
  externalDate,
  ...rest
}: BulkSource): SourceFlags => ({
  ...rest,
  ...(deduplicate === null ? {} : { deduplicate }),
  ...(only === null ? {} : { only }),
  ...(action == null ? {} : { action }),
  ...(externalDate == null ? {} : { externalDate }),
  ...(vocabulary == null ? {} : { vocabulary }),
  ...(column === null ? {} : { column }),
  // Null, or undefined in a job of an earlier version, is the first sheet.
  ...(typeof sheet === 'string' ? { sheet } : {}),
  // Null, or undefined in a job of an earlier version, means that the encoding is detected.
  ...(typeof encoding === 'string' ? { encoding } : {}),
  // Earlier versions verified one address per row.
  ...(allAddresses === null ? {} : { allAddresses: allAddresses ?? false }),
})

export function readSource({ id, source }: Job): BulkSource {
  const read = JSON.parse(source) as Partial<BulkSource>
  if (read.output !== undefined) {
    return { ...(read as BulkSource), deduplicate: readDeduplicate(read.deduplicate) }
  }
  throw new EvError(
    'usage',
    `${id} was started by an earlier version of ev, which did not store its options. Run the command again: ev bulk ${read.path} -o FILE`,
  )
}

/** Returns the list as the job has read it, whose rows have the positions of its results. */
export function readAsBefore(list: ListFile, { source }: Job): ListFile {
  const { countsBlankRows = false } = JSON.parse(source) as Partial<BulkSource>
  return { ...list, dialect: { ...list.dialect, countsBlankRows } }
}

/** Jobs of earlier versions have true for rows with the same address. */
const readDeduplicate = (stored: DeduplicateBy | boolean | null | undefined) =>
  typeof stored === 'string' ? stored : stored ? 'address' : null
