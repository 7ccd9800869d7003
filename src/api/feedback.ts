import type { z } from '@hono/zod-openapi'
import { getDayCounts, getVerdictCounts } from '../feedback/feedback-counts.ts'
import { presentReport } from '../feedback/present-report.ts'
import { checkFeedback, recordFeedback } from '../feedback/record-feedback.ts'
import { buildReport } from '../feedback/report.ts'
import { commitResponse } from './middleware/idempotency.ts'
import { newRouter, route } from './route.ts'
import { json } from './schemas/answers.ts'
import {
  FEEDBACK_EXAMPLE,
  FEEDBACK_REQUEST_EXAMPLE,
  FeedbackAnswer,
  FeedbackReportAnswer,
  FeedbackRequest,
  REPORT_DAYS_MAX,
  REPORT_EXAMPLE,
  REPORT_OPERATORS_MAX,
} from './schemas/feedback.ts'
import type { Service } from './service.ts'

/** 1,000 items with texts of 1,000 characters. */
const FEEDBACK_BODY_MAX = 2 * 1024 * 1024

/** Routes of feedback. */
export function feedbackRoutes(service: Service) {
  const submit = route(service, 'POST /v1/feedback', {
    id: 'submitFeedback',
    summary: 'Report bounces, deliveries and complaints',
    description:
      'Later verifications of the account use the feedback. A repeated item has no further effect. An invalid item is listed in `rejected`; the others are recorded.',
    scope: 'feedback:write',
    idempotent: true,
    body: {
      schema: FeedbackRequest,
      example: FEEDBACK_REQUEST_EXAMPLE,
      max: FEEDBACK_BODY_MAX,
    },
    answer: json(
      FeedbackAnswer,
      'The numbers of recorded, repeated and rejected items',
      FEEDBACK_EXAMPLE,
    ),
  })
  const report = route(service, 'GET /v1/feedback/report', {
    id: 'getFeedbackReport',
    summary: 'Compare confidence with outcomes',
    description:
      'Verdicts of the account whose outcome was reported: their confidence, the share of correct ones, and what they predicted. Empty in the sandbox.',
    scope: 'feedback:read',
    answer: json(FeedbackReportAnswer, 'The report', REPORT_EXAMPLE),
  })
  return newRouter()
    .openapi(report, async c => {
      const accountId = c.get('caller').account.id
      const [counts, days] = c.get('sandbox')
        ? [[], []]
        : await Promise.all([
            getVerdictCounts(service.database, accountId),
            getDayCounts(service.database, accountId, REPORT_DAYS_MAX),
          ])
      const data = presentReport(buildReport(counts), days, REPORT_OPERATORS_MAX)
      return c.json({ success: true as const, data }, 200)
    })
    .openapi(submit, async c => {
      const accountId = c.get('caller').account.id
      const items = c.req.valid('json').items.map(toInput)
      const submission = { accountId, source: 'api', items }
      const data = c.get('sandbox')
        ? checkFeedback(service, submission)
        : await recordFeedback(service, submission)
      if (!c.get('sandbox')) service.feedback.refresh()
      return commitResponse(c, service, async () => ({
        status: 200,
        body: { success: true, data },
      }))
    })
}

type Item = z.output<typeof FeedbackRequest>['items'][number]

const toInput = ({ email, enhanced_code, occurred_at, ...item }: Item) => ({
  ...item,
  ...{ address: email, enhancedCode: enhanced_code },
  occurredAt: occurred_at === undefined ? null : Date.parse(occurred_at),
})
