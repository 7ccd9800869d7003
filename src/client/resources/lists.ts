import type { CallOptions, Connection, CreateOptions } from '../connection.ts'
import type {
  BatchRequest,
  BulkRequest,
  FileDryRun,
  InstantBulk,
  JobStatus,
  QueuedBatch,
  QueuedBulk,
  QueuedFile,
} from '../types.ts'

export type FileOptions = CreateOptions & {
  /** The name of the file; that of a File when left out. */
  readonly filename?: string | undefined
  /** The column of addresses, by its name or its number from 1; it is looked for when left out. */
  readonly column?: string | number | undefined
  /** Whether the first row names the columns; it is looked for when left out. */
  readonly header?: boolean | undefined
  /** A name for the job. */
  readonly name?: string | undefined
  readonly deduplicate?: boolean | undefined
  /** False: no mail server is asked. */
  readonly check_smtp?: boolean | undefined
  /** True: the mail server is asked even if its answer is known. */
  readonly force_refresh?: boolean | undefined
}

/** What a list can be handed in as; a stream is read whole first, so that it can be sent again. */
export type ListFile = Blob | string | Uint8Array | ReadableStream<Uint8Array>

export type Lists = {
  /** Up to 10 addresses are answered at once (`instant`), up to 10,000 become a job. */
  bulk(
    list: readonly string[] | BulkRequest,
    options?: CreateOptions,
  ): Promise<InstantBulk | QueuedBulk>
  /** How a job stands, with its results when it is over. */
  bulkStatus(jobId: string, options?: StatusOptions): Promise<JobStatus>
  /** Up to 50,000 addresses, always as a job. */
  batch(list: readonly string[] | BatchRequest, options?: CreateOptions): Promise<QueuedBatch>
  /** A list as people have it: CSV, TSV, or one address a line. Its columns come back in the download. */
  file(list: ListFile, options?: FileOptions): Promise<QueuedFile>
  /** What would come of a file, column by column and in numbers; nothing is stored, charged or asked. */
  preview(list: ListFile, options?: PreviewOptions): Promise<FileDryRun>
}

export type PreviewOptions = Omit<FileOptions, 'idempotencyKey' | 'name'>

export type StatusOptions = CallOptions & {
  /** Gives the rows that are done, before the job is. */
  readonly partial?: boolean | undefined
  /** Seconds: answers when the job has moved, or after that time. */
  readonly wait?: number | undefined
}

export function listsRoom({ json }: Connection): Lists {
  return {
    bulk: (list, options) => json(create('/v1/verify/bulk', toBody(list)), options),
    bulkStatus: (jobId, { partial, wait, ...options } = {}) =>
      json(
        {
          method: 'GET',
          path: `/v1/verify/bulk/status/${encodeURIComponent(jobId)}`,
          query: { partial, wait },
          waitMs: (wait ?? 0) * 1_000,
        },
        options,
      ),
    batch: (list, options) => json(create('/v1/verify/batch', toBody(list)), options),
    file: async (list, options = {}) => {
      const { form, rest } = await formOf(list, options)
      return json(create('/v1/verify/file', form), rest)
    },
    preview: async (list, options = {}) => {
      const { form, rest } = await formOf(list, options, true)
      return json({ ...create('/v1/verify/file', form), creates: false }, rest)
    },
  }
}

const toBody = (list: readonly string[] | BulkRequest | BatchRequest) =>
  'map' in list ? { emails: list } : list

async function formOf(list: ListFile, options: FileOptions, dryRun?: true) {
  const { filename, column, header, name, deduplicate, check_smtp, force_refresh, ...rest } =
    options
  const form = new FormData()
  const asked = { deduplicate, check_smtp, force_refresh }
  const fields = { column, header, name, ...asked, dry_run: dryRun }
  // Before the file: what is said of it is known when it comes.
  for (const [key, value] of Object.entries(fields)) {
    if (value !== undefined) form.append(key, String(value))
  }
  form.append('file', await blobOf(list), filename ?? nameOf(list))
  return { form, rest }
}

const create = (path: string, body: object) =>
  ({ method: 'POST', path, body, creates: true, timeoutMs: SEND_MS }) as const

function blobOf(list: ListFile): Blob | Promise<Blob> {
  if (list instanceof Blob) return list
  if (list instanceof ReadableStream) return new Response(list).blob()
  return new Blob([typeof list === 'string' ? list : Uint8Array.from(list)])
}

/** A File tells its name; not every platform of a Blob has the class. */
const nameOf = (list: ListFile) =>
  list instanceof Blob && 'name' in list && typeof list.name === 'string' ? list.name : 'list.csv'

/** The 16 MB of the largest batch take as long on a slow line of 1 Mbit/s. */
const SEND_MS = 120_000
