import type { Connection, CreateOptions } from '../connection.ts'
import type { FeedbackAnswer, FeedbackItem } from '../types.ts'
import { unwrapData } from './data.ts'

export type Feedback = {
  /** Reports up to 1,000 bounces, deliveries and complaints. A repeated item counts once. */
  submit(items: readonly FeedbackItem[], options?: CreateOptions): Promise<FeedbackAnswer['data']>
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
  }
}
