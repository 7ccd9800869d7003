import type { CallOptions, Connection, CreateOptions } from '../connection.ts'
import { EvConnectionError } from '../error.ts'
import { eventsOf, objectsOf, recordsOf } from '../stream.ts'
import type {
  Breakdown,
  Class,
  DownloadRow,
  Job,
  JobPage,
  JobProgress,
  ListedJob,
  ListJobsQuery,
  ListResultsQuery,
  Reason,
  ResultPage,
  ResultRow,
} from '../types.ts'
import { dataOf } from './data.ts'
import { createListing, type Listing } from './pagination.ts'

export type JobOptions = CallOptions & {
  /** Gives the results too. */
  readonly include?: 'results' | undefined
  /** With `include`: gives the rows that are done, before the job is. */
  readonly partial?: boolean | undefined
  /** Seconds: answers when the job has moved, or after that time. */
  readonly wait?: number | undefined
}

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

export type RowsQuery = Omit<ListResultsQuery, 'cursor' | 'class' | 'reason'> & {
  /** Only rows of these classes. */
  readonly class?: readonly Class[] | undefined
  /** Only rows with these reasons. */
  readonly reason?: readonly Reason[] | undefined
}

export type Jobs = {
  get(jobId: string, options?: JobOptions): Promise<Job>
  /** The newest first. */
  list(query?: Omit<ListJobsQuery, 'cursor'>, options?: CallOptions): Listing<ListedJob>
  cancel(jobId: string, options?: CallOptions): Promise<Job>
  /** Goes on with a job that was cancelled or failed. */
  resume(jobId: string, options?: CreateOptions): Promise<Job>
  /** How it stands, at once and whenever that has changed, to its end: the last one tells of that. */
  events(jobId: string, options?: CallOptions): AsyncIterable<JobProgress>
  /** Forgets a job and its addresses. */
  delete(jobId: string, options?: CallOptions): Promise<void>
  /** The results as they are written: CSV unless another format is asked for. */
  download(jobId: string, options?: DownloadOptions): Promise<ReadableStream<Uint8Array>>
  /** The records of the CSV, the names of its columns first, each without its line break. */
  csv(jobId: string, options?: Omit<DownloadOptions, 'format'>): AsyncIterable<string>
  /** The results one after the other, in the order of the list. */
  results(jobId: string, options?: RowsOptions): AsyncIterable<DownloadRow>
  /** The rows in the order of the list, also those without a result yet; a page may be short, or empty, before the last. */
  rows(jobId: string, query?: RowsQuery, options?: CallOptions): Listing<ResultRow>
  /** The results by class, reason and mail operator. */
  breakdown(jobId: string, options?: CallOptions): Promise<Breakdown['data']>
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
    resume: (jobId, options) =>
      json({ method: 'POST', path: `${pathOf(jobId)}/resume`, creates: true }, options),
    async *events(jobId, options) {
      const bytes = await stream({ method: 'GET', path: `${pathOf(jobId)}/events` }, options)
      for await (const { event, data } of eventsOf<{ event: string; data: JobProgress }>(bytes)) {
        yield data
        if (event === 'end') return
      }
      throw new EvConnectionError('The events ended before the job did: ask for them again.', {
        timedOut: false,
      })
    },
    delete: (jobId, options) => json({ method: 'DELETE', path: pathOf(jobId) }, options),
    download,
    async *csv(jobId, options) {
      yield* recordsOf(await download(jobId, { ...options, format: 'csv' }))
    },
    async *results(jobId, options) {
      yield* objectsOf<DownloadRow>(await download(jobId, { ...options, format: 'ndjson' }))
    },
    rows: (jobId, { after, ...filters } = {}, options) =>
      createListing(cursor => {
        const query = { ...filters, ...(cursor === undefined ? { after } : { cursor }) }
        const path = `${pathOf(jobId)}/results`
        return dataOf(json<ResultPage>({ method: 'GET', path, query }, options))
      }),
    breakdown: (jobId, options) =>
      dataOf(json<Breakdown>({ method: 'GET', path: `${pathOf(jobId)}/breakdown` }, options)),
  }
}

const pathOf = (jobId: string) => `/v1/jobs/${encodeURIComponent(jobId)}`
