import type { CallOptions, Connection } from '../connection/connection.ts'
import { objectsOf, recordsOf } from '../connection/stream.ts'
import type { DownloadRow, Job, ListedJob, ListJobsQuery } from '../types.ts'
import { createListing, type Listing, type Page } from './listing.ts'

export type JobOptions = CallOptions & {
  /** Gives the results too. */
  readonly include?: readonly 'results'[] | undefined
  /** Seconds: answers when the job has moved, or after that time. */
  readonly wait?: number | undefined
}

export type Class = 'deliverable' | 'risky' | 'undeliverable' | 'unknown'

export type RowsOptions = CallOptions & {
  /** Gives only results of these classes. */
  readonly filter?: readonly Class[] | undefined
}

export type DownloadOptions = RowsOptions & {
  readonly format?: 'csv' | 'json' | 'ndjson' | undefined
}

export type Jobs = {
  get(jobId: string, options?: JobOptions): Promise<Job>
  /** The newest first. */
  list(query?: Omit<ListJobsQuery, 'cursor'>, options?: CallOptions): Listing<ListedJob>
  cancel(jobId: string, options?: CallOptions): Promise<Job>
  /** Forgets a job and its addresses. */
  delete(jobId: string, options?: CallOptions): Promise<void>
  /** The results as they are written: CSV unless another format is asked for. */
  download(jobId: string, options?: DownloadOptions): Promise<ReadableStream<Uint8Array>>
  /** The records of the CSV, the names of its columns first, each without its line break. */
  csv(jobId: string, options?: RowsOptions): AsyncIterable<string>
  /** The results one after the other, in the order of the list. */
  results(jobId: string, options?: RowsOptions): AsyncIterable<DownloadRow>
}

export function jobsRoom({ json, stream }: Connection): Jobs {
  const download = (jobId: string, { format, filter, ...options }: DownloadOptions = {}) =>
    stream(
      {
        method: 'GET',
        path: `${pathOf(jobId)}/download`,
        query: { format, filter },
        ...REPEATABLE,
      },
      options,
    )

  return {
    get: (jobId, { include, wait, ...options } = {}) =>
      json(
        {
          method: 'GET',
          path: pathOf(jobId),
          query: { include, wait },
          ...REPEATABLE,
          waitMs: (wait ?? 0) * 1_000,
        },
        options,
      ),
    list: (query, options) =>
      createListing(async cursor => {
        const { data } = await json<{ data: Page<ListedJob> }>(
          { method: 'GET', path: '/v1/jobs', query: { ...query, cursor }, ...REPEATABLE },
          options,
        )
        return data
      }),
    cancel: (jobId, options) =>
      json({ method: 'POST', path: `${pathOf(jobId)}/cancel`, ...REPEATABLE }, options),
    delete: (jobId, options) =>
      json({ method: 'DELETE', path: pathOf(jobId), ...REPEATABLE }, options),
    download,
    async *csv(jobId, options) {
      yield* recordsOf(await download(jobId, { ...options, format: 'csv' }))
    },
    async *results(jobId, options) {
      yield* objectsOf<DownloadRow>(await download(jobId, { ...options, format: 'ndjson' }))
    },
  }
}

const pathOf = (jobId: string) => `/v1/jobs/${encodeURIComponent(jobId)}`

const REPEATABLE = { repeatable: 'yes' } as const
