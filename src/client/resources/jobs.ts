import type { CallOptions, Connection } from '../connection.ts'
import type { ClientDeps } from '../deps.ts'
import { EvConnectionError } from '../error.ts'
import { encodeId } from '../path-id.ts'
import { readEvents, readObjects, readRecords } from '../stream.ts'
import type {
  Action,
  Change,
  ChangePage,
  Class,
  DownloadRow,
  Job,
  JobProgress,
  ListChangesQuery,
  ListResultsQuery,
  Reason,
  ResultPage,
  ResultRow,
  Vocabulary,
} from '../types.ts'
import { createJobActions, type JobActions } from './methods.ts'
import { createListing, createRequests, type Listing } from './requests.ts'

export type JobOptions = CallOptions & {
  /** Includes the results. */
  readonly include?: 'results' | undefined
  /** With `include`: includes finished rows before the job is completed. */
  readonly partial?: boolean | undefined
  /** Long polling: seconds to wait for progress before the response. */
  readonly wait?: number | undefined
}

export type RowsOptions = CallOptions & {
  /** Returns only results of these classes. */
  readonly filter?: readonly Class[] | undefined
  /** Returns only results with these actions. */
  readonly action?: readonly Action[] | undefined
  /** Returns the available results of a job that is not completed. */
  readonly partial?: boolean | undefined
}

export type DownloadOptions = RowsOptions & {
  readonly format?: 'csv' | 'xlsx' | 'json' | 'ndjson' | undefined
  /** Disables the escaping of CSV cells that a spreadsheet could run as formulas. */
  readonly raw?: boolean | undefined
  /** Returns each address once; with `canonical`, each mailbox. */
  readonly deduplicate?: boolean | 'address' | 'canonical' | undefined
  /** Writes the columns and words of another service. Only for CSV and XLSX. */
  readonly vocabulary?: Vocabulary | undefined
}

export type RowsQuery = Omit<
  ListResultsQuery,
  'cursor' | 'class' | 'action' | 'reason' | 'count'
> & {
  /** Only rows of these classes. */
  readonly class?: readonly Class[] | undefined
  /** Only rows with these actions. */
  readonly action?: readonly Action[] | undefined
  /** Only rows with these reasons. */
  readonly reason?: readonly Reason[] | undefined
  /** Adds `total` and `offset` to each page. */
  readonly count?: boolean | undefined
}

export type ChangesQuery = Omit<ListChangesQuery, 'from' | 'to'> & {
  /** Only rows that had one of these classes. */
  readonly from?: readonly Class[] | undefined
  /** Only rows that have one of these classes now. */
  readonly to?: readonly Class[] | undefined
}

export type Jobs = JobActions & {
  get(jobId: string, options?: JobOptions): Promise<Job>
  /**
   * Returns the counts of a job that verifies a list again, by the classes before and after, with
   * one page of changed rows.
   */
  changes(jobId: string, query?: ChangesQuery, options?: CallOptions): Promise<ChangePage['data']>
  /** Lists the rows whose class has changed. Any page may be short or empty. */
  changedRows(
    jobId: string,
    query?: Omit<ChangesQuery, 'cursor'>,
    options?: CallOptions,
  ): Listing<Change>
  /** Streams the progress: the current state, every change, and finally the end of the job. */
  events(jobId: string, options?: CallOptions): AsyncIterable<JobProgress>
  /** Downloads the results as a stream. Default format: CSV. */
  download(jobId: string, options?: DownloadOptions): Promise<ReadableStream<Uint8Array>>
  /** Iterates the CSV records, starting with the header, each without its line break. */
  csv(jobId: string, options?: Omit<DownloadOptions, 'format'>): AsyncIterable<string>
  /** Iterates the results in the order of the list. */
  results(jobId: string, options?: RowsOptions): AsyncIterable<DownloadRow>
  /**
   * Lists the rows, including those without a result. In the order of the list, any page may be short
   * or empty.
   */
  rows(jobId: string, query?: RowsQuery, options?: CallOptions): Listing<ResultRow>
}

export function createJobsResource(connection: Connection): Jobs {
  const { json, stream } = connection
  const requests = createRequests(connection)
  const download = (
    jobId: string,
    {
      format,
      filter,
      action,
      partial,
      raw,
      deduplicate,
      vocabulary,
      ...options
    }: DownloadOptions = {},
  ) => {
    const path = `${jobPath(jobId)}/download`
    const query = { format, filter, action, partial, raw, deduplicate, vocabulary }
    return stream({ method: 'GET', path, query }, options)
  }

  const changes = (jobId: string, query: ChangesQuery = {}, options?: CallOptions) =>
    requests.get<ChangePage>(`${jobPath(jobId)}/changes`, options, query)

  return {
    ...createJobActions(connection),
    get: (jobId, { include, partial, wait, ...options } = {}) =>
      json(
        {
          method: 'GET',
          path: jobPath(jobId),
          query: { include, partial, wait },
          waitMs: (wait ?? 0) * 1_000,
        },
        options,
      ),
    changes,
    changedRows: (jobId, query, options) =>
      createListing(cursor =>
        changes(jobId, { ...query, ...(cursor === undefined ? {} : { cursor }) }, options),
      ),
    async *events(jobId, options) {
      const bytes = await stream({ method: 'GET', path: `${jobPath(jobId)}/events` }, options)
      for await (const { event, data } of readEvents<{ event: string; data: JobProgress }>(bytes)) {
        yield data
        if (event === 'end') return
      }
      throw new EvConnectionError(
        'The event stream ended before the job did. Call events() again.',
        {
          timedOut: false,
        },
      )
    },
    download,
    async *csv(jobId, options) {
      yield* readRecords(await download(jobId, { ...options, format: 'csv' }))
    },
    async *results(jobId, options) {
      yield* readObjects<DownloadRow>(await download(jobId, { ...options, format: 'ndjson' }))
    },
    rows: (jobId, { after, ...filters } = {}, options) =>
      createListing(cursor => {
        const query = { ...filters, ...(cursor === undefined ? { after } : { cursor }) }
        return requests.get<ResultPage>(`${jobPath(jobId)}/results`, options, query)
      }),
  }
}

const jobPath = (jobId: string) => `/v1/jobs/${encodeId(jobId)}`

export type WaitOptions = CallOptions & {
  /** Called with the job at first and whenever it has progressed. */
  readonly onProgress?: ((job: Job) => void) | undefined
}

/** Polls a job until it has ended. `poll` may wait until the job has progressed. */
export async function waitForEnd(
  poll: (waitS: number) => Promise<Job>,
  deps: ClientDeps,
  { signal, onProgress }: WaitOptions,
): Promise<Job> {
  let lastProcessed = -1
  for (let polls = 0; ; polls++) {
    const job = await poll(polls === 0 ? 0 : WAIT_S)
    if (job.processed_emails !== lastProcessed || isDone(job)) onProgress?.(job)
    lastProcessed = job.processed_emails
    if (isDone(job)) return job
    const pauseMs = Math.min(PAUSE_MAX_MS, PAUSE_MS * 1.5 ** polls)
    await deps.sleep(Math.round(pauseMs), signal)
    signal?.throwIfAborted()
  }
}

const isDone = ({ status }: Job) => status !== 'queued' && status !== 'processing'

/** Below the idle timeout of proxies (60 s). */
const WAIT_S = 25
/**
 * A job progresses many times per second, and the free plan allows ten requests per minute: the
 * pause grows from 0.5 s to 8 s.
 */
const PAUSE_MS = 500
const PAUSE_MAX_MS = 8_000
