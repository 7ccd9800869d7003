import type { CallOptions, Connection, CreateOptions } from '../connection.ts'
import type {
  CreatedFeedbackSource,
  FeedbackAnswer,
  FeedbackItem,
  FeedbackReportAnswer,
  FeedbackSource,
  FeedbackSourceList,
  NewFeedbackSource,
} from '../types.ts'
import { unwrapData } from './pagination.ts'

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
  /** Deletes a source. Its feedback stays. */
  delete(sourceId: string, options?: CallOptions): Promise<void>
}

export function createFeedbackResource({ json }: Connection): Feedback {
  return {
    submit: (items, options) =>
      unwrapData(
        json<FeedbackAnswer>(
          { method: 'POST', path: '/v1/feedback', body: { items }, creates: true },
          options,
        ),
      ),
    sources: {
      async list(options) {
        const request = { method: 'GET', path: SOURCES_PATH } as const
        return (await unwrapData(json<FeedbackSourceList>(request, options))).sources
      },
      create: (body, options) =>
        unwrapData(
          json<CreatedFeedbackSource>(
            { method: 'POST', path: SOURCES_PATH, body, creates: true },
            options,
          ),
        ),
      delete: (sourceId, options) =>
        json(
          { method: 'DELETE', path: `${SOURCES_PATH}/${encodeURIComponent(sourceId)}` },
          options,
        ),
    },
    report: options =>
      unwrapData(
        json<FeedbackReportAnswer>({ method: 'GET', path: '/v1/feedback/report' }, options),
      ),
  }
}

const SOURCES_PATH = '/v1/feedback/sources'
