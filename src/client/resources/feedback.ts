import type { CallOptions, Connection, CreateOptions } from '../connection.ts'
import { encodeId } from '../path-id.ts'
import type {
  CreatedFeedbackSource,
  FeedbackAnswer,
  FeedbackItem,
  FeedbackReportAnswer,
  FeedbackSource,
  FeedbackSourceList,
  NewFeedbackSource,
} from '../types.ts'
import { createRequests } from './requests.ts'

export type Feedback = {
  /** Reports up to 1,000 bounces, deliveries and complaints. A repeated item counts once. */
  submit(items: readonly FeedbackItem[], options?: CreateOptions): Promise<FeedbackAnswer['data']>
  /** Compares the confidence of verdicts with their reported outcomes. */
  report(options?: CallOptions): Promise<FeedbackReportAnswer['data']>
  readonly sources: FeedbackSources
}

/** The URLs to which email providers send bounces, deliveries and complaints. */
type FeedbackSources = {
  /** Lists sources, oldest first. */
  list(options?: CallOptions): Promise<FeedbackSource[]>
  /** Creates a source. Only this response contains its password, if it has one. */
  create(source: NewFeedbackSource, options?: CreateOptions): Promise<CreatedFeedbackSource['data']>
  /** Deletes a source. Its feedback is kept. */
  delete(sourceId: string, options?: CallOptions): Promise<void>
}

export function createFeedbackResource(connection: Connection): Feedback {
  const requests = createRequests(connection)
  return {
    submit: (items, options) => requests.create<FeedbackAnswer>('/v1/feedback', { items }, options),
    report: options => requests.get<FeedbackReportAnswer>('/v1/feedback/report', options),
    sources: {
      list: async options =>
        (await requests.get<FeedbackSourceList>(SOURCES_PATH, options)).sources,
      create: (source, options) =>
        requests.create<CreatedFeedbackSource>(SOURCES_PATH, source, options),
      delete: (sourceId, options) =>
        requests.delete(`${SOURCES_PATH}/${encodeId(sourceId)}`, options),
    },
  }
}

const SOURCES_PATH = '/v1/feedback/sources'
