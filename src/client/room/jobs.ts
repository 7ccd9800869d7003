import type { CallOptions, Connection } from '../connection/connection.ts'
import { objectsOf, recordsOf } from '../connection/stream.ts'
import type { DownloadRow, Job, JobPage, ListedJob, ListJobsQuery, SingleResult } from '../types.ts'
import { dataOf } from './data.ts'
import { createListing, type Listing } from './listing.ts'

export type JobOptions = CallOptions & {
  /** Gives the results too. */
  readonly include?: 'results' | undefined
  /** With `include`: gives the rows that are done, before the job is. */
  readonly partial?: boolean | undefined
  /** Seconds: answers when the job has moved, or after that time. */
  readonly wait?: number | undefined
}

export type Class = NonNullable<SingleResult['class']>

export type RowsOptions = CallOptions & {
  /** Gives only results of these classes. */
  readonly filter?: readonly Class[] | undefined
  /** Gives what is there already, also of a job that is not completed. */
  readonly partial?: boolean | undefined
}

export type DownloadOptions = RowsOptions & {
  readonly format?: 'csv' | 'json' | 'ndjson' | undefined
  /** Leaves cells of a CSV as they are, which a spreadsheet may run as formulas. */
  readonly raw?: boolean | undefined
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
  csv(jobId: string, options?: Omit<DownloadOptions, 'format'>): AsyncIterable<string>
  /** The results one after the other, in the order of the list. */
  results(jobId: string, options?: RowsOptions): AsyncIterable<DownloadRow>
}

export function jobsRoom({ json, stream }: Connection): Jobs {
  const download = (
    jobId: string,
    { format, filter, partial, raw, ...options }: DownloadOptions = {},
  ) => {
    const path = `${pathOf(jobId)}/download`
    const query = { format, filter, partial, raw }
    return stream({ method: 'GET', path, query }, options)
  }

  return {
    get: (jobId, { include, partial, wait, ...options } = {}) =>
      json(
        {
          method: 'GET',
          path: pathOf(jobId),
          query: { include, partial, wait },
          waitMs: (wait ?? 0) * 1_000,
        },
        options,
      ),
    list: (query, options) =>
      createListing(cursor =>
        dataOf(
          json<JobPage>({ method: 'GET', path: '/v1/jobs', query: { ...query, cursor } }, options),
        ),
      ),
    cancel: (jobId, options) => json({ method: 'POST', path: `${pathOf(jobId)}/cancel` }, options),
    delete: (jobId, options) => json({ method: 'DELETE', path: pathOf(jobId) }, options),
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
