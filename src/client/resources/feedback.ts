import type { Connection, CreateOptions } from '../connection.ts'
import type { FeedbackAnswer, FeedbackItem, RecordedFeedback } from '../types.ts'
import {
  createFeedbackReports,
  createFeedbackSources,
  type FeedbackReports,
  type FeedbackSources,
} from './methods.ts'
import { createRequests } from './requests.ts'

export type Feedback = FeedbackReports & {
  /** Reports up to 1,000 bounces, deliveries and complaints. A repeated item counts once. */
  submit(items: readonly FeedbackItem[], options?: CreateOptions): Promise<RecordedFeedback>
  readonly sources: FeedbackSources
}

export function createFeedbackResource(connection: Connection): Feedback {
  const { send } = createRequests(connection)
  return {
    ...createFeedbackReports(connection),
    submit(items, options) {
      const request = { method: 'POST', path: '/v1/feedback', body: { items } } as const
      return send<FeedbackAnswer>({ ...request, creates: true }, options)
    },
    sources: createFeedbackSources(connection),
  }
}
