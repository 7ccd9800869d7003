import { resolve } from 'node:path'
import type { Job } from '../../jobs/job-store.ts'
import { EvError } from '../../platform/error.ts'
import type { ListFile } from './list-file.ts'
import type { Format } from './row-text.ts'

/** What a job keeps of the command that it was begun with, or last gone on with: all that finishing it needs. */
export type BulkSource = {
  /** The list, as an absolute path. */
  readonly path: string
  /** Whether that is the copy of what came from stdin, which goes when the job is finished. */
  readonly kept: boolean
  /** An absolute path, or `-`. */
  readonly output: string
  /** As given; null: ev looks. */
  readonly column: string | null
  readonly encoding: string | null
  readonly header: boolean
  readonly raw: boolean
  readonly only: string | null
  readonly split: boolean
  readonly format: Format
  readonly sandbox: boolean
  readonly wait: boolean
}

/** The flags that say what is asked and what becomes of it; how ev is set up stands elsewhere. */
export type SourceFlags = {
  readonly output: string
  readonly column?: string
  readonly encoding?: string
  readonly header?: boolean
  readonly raw?: boolean
  readonly only?: string
  readonly split?: boolean
  readonly format?: Format
  readonly sandbox?: boolean
  readonly wait?: boolean
}

export function toSource({ path, kept }: ListFile, flags: SourceFlags): BulkSource {
  return {
    path,
    kept,
    output: flags.output === '-' ? '-' : resolve(flags.output),
    column: flags.column ?? null,
    encoding: flags.encoding ?? null,
    header: flags.header ?? true,
    raw: flags.raw ?? false,
    only: flags.only ?? null,
    split: flags.split ?? false,
    format: flags.format ?? 'csv',
    sandbox: flags.sandbox ?? false,
    wait: flags.wait ?? true,
  }
}

export const flagsOf = ({ only, column, encoding, ...rest }: BulkSource): SourceFlags => ({
  ...rest,
  ...(only === null ? {} : { only }),
  ...(column === null ? {} : { column }),
  // Null and, in a job of an earlier ev, undefined: ev looks.
  ...(typeof encoding === 'string' ? { encoding } : {}),
})

export function readSource({ id, source }: Job): BulkSource {
  const read = JSON.parse(source) as Partial<BulkSource>
  if (read.output !== undefined) return read as BulkSource
  throw new EvError(
    'usage',
    `${id} was begun by an earlier ev, which did not keep its options. Give the command again: ev bulk ${read.path} -o FILE.`,
  )
}
