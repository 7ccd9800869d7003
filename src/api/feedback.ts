import { createRoute, z } from '@hono/zod-openapi'
import type { MiddlewareHandler } from 'hono'
import { findAccount } from '../accounts/account-store.ts'
import { findResponse, REPLAY_MS, saveResponse } from '../accounts/idempotency.ts'
import { findPlan } from '../accounts/plan.ts'
import { write } from '../db/database.ts'
import { FEEDBACK_KINDS, FEEDBACK_TEXT_MAX } from '../feedback/feedback.ts'
import { getDayCounts, getVerdictCounts } from '../feedback/feedback-counts.ts'
import { presentReport } from '../feedback/present-report.ts'
import { PROVIDER_NAMES, PROVIDERS } from '../feedback/providers/providers.ts'
import { SnsCertificates } from '../feedback/providers/sns-certificates.ts'
import { getSource, receiveFeedback } from '../feedback/receive-feedback.ts'
import { checkFeedback, FEEDBACK_ITEMS_MAX, recordFeedback } from '../feedback/record-feedback.ts'
import { buildReport } from '../feedback/report.ts'
import type { ApiDeps } from './api-deps.ts'
import type { Env } from './context.ts'
import { checkBodyHeaders, readJson, readJsonOrForm } from './middleware/body.ts'
import { commitResponse, type IdempotencyDeps } from './middleware/idempotency.ts'
import { createValidator } from './middleware/validate.ts'
import { timeInput } from './query.ts'
import { newRouter, route } from './route.ts'
import { json, successBody } from './schemas/answers.ts'
import { ANY_OPERATION, errorResponses } from './schemas/error.ts'
import { idField } from './schemas/fields.ts'
import { BASIC_CHALLENGE, responseHeaders } from './schemas/headers.ts'

type FeedbackDeps = Pick<
  ApiDeps,
  'clock' | 'database' | 'feedback' | 'guard' | 'metrics' | 'secretBox' | 'settings' | 'transport'
> &
  IdempotencyDeps

const FeedbackItem = z
  .strictObject({
    email: z
      .string()
      .max(1_000)
      .openapi({ description: 'The recipient.', example: 'ann@example.com' }),
    kind: z.enum(FEEDBACK_KINDS).openapi({
      description: 'What happened to the message.',
      example: 'bounced',
    }),
    code: z
      .int()
      .min(200)
      .max(599)
      .optional()
      .openapi({ description: 'SMTP reply code of a bounce.', example: 550 }),
    enhanced_code: z
      .string()
      .max(20)
      .optional()
      .openapi({ description: 'Enhanced status code (RFC 3463).', example: '5.1.1' }),
    text: z
      .string()
      .max(10_000)
      .optional()
      .openapi({
        example: 'User unknown',
        description: `Diagnostic text of a bounce. The first ${FEEDBACK_TEXT_MAX} characters are stored.`,
      }),
    occurred_at: timeInput().optional().openapi({
      description: 'When it happened. Default: now.',
      example: '2026-03-21T10:30:00Z',
    }),
    permanent: z.boolean().optional().openapi({
      example: true,
      description:
        'Whether your provider calls a bounce permanent. With true, a bounce without a code means that the mailbox does not exist. With false, the bounce does not change verdicts.',
    }),
    id: z.string().min(1).max(255).optional().openapi({
      example: 'evt-9f3c',
      description:
        'ID of the event in your system. An item with the ID of an earlier item is a duplicate. Items without an ID are compared by their content.',
    }),
  })
  .openapi('FeedbackItem')

const FeedbackRequest = z
  .strictObject({ items: z.array(FeedbackItem).min(1).max(FEEDBACK_ITEMS_MAX) })
  .openapi('FeedbackRequest')

const RecordedFeedback = z
  .object({
    received: z.int().min(0).openapi({ example: 2 }),
    recorded: z.int().min(0).openapi({ example: 2 }),
    duplicates: z
      .int()
      .min(0)
      .openapi({ description: 'Items that were already recorded.', example: 0 }),
    rejected: z
      .array(
        z.object({
          index: z.int().min(0).openapi({ example: 1 }),
          error: z.string().openapi({ example: '"kind" is missing.' }),
        }),
      )
      .openapi({ description: 'Invalid items, by their index in the request.', example: [] }),
  })
  .openapi('RecordedFeedback')

const FeedbackAnswer = successBody(RecordedFeedback).openapi('FeedbackAnswer')

const FEEDBACK_REQUEST_EXAMPLE = {
  items: [
    {
      email: 'ann@example.com',
      kind: 'bounced' as const,
      code: 550,
      enhanced_code: '5.1.1',
      text: 'User unknown',
      occurred_at: '2026-03-21T10:30:00Z',
    },
    { email: 'bob@example.com', kind: 'delivered' as const },
  ],
}

/** Operators of the report: those with the most verdicts. */
const REPORT_OPERATORS_MAX = 100
/** Days with feedback in the report: the last ones. */
const REPORT_DAYS_MAX = 30

const share = (description: string, example: number) =>
  z.number().min(0).max(1).openapi({ description, example })

const number = (example: number) => z.int().min(0).openapi({ example })

const binFields = {
  count: z.int().openapi({ description: 'Verdicts with a known outcome.', example: 1_200 }),
  predicted: share('Mean confidence.', 0.943),
  observed: share('Share of correct verdicts.', 0.951),
}

const rowFields = {
  ...binFields,
  brier_score: share(
    'Brier score: the mean squared difference between confidence and outcome. 0 is best.',
    0.044,
  ),
  calibration_error: share(
    'Expected calibration error: the mean difference between confidence and the share of correct verdicts, over ten ranges of confidence. 0 is best.',
    0.012,
  ),
}

const CalibrationFigures = z.object(rowFields).openapi('CalibrationFigures')

const CalibrationBin = z.object(binFields).openapi('CalibrationBin')

const reason = z.string().openapi({ example: 'accepted_email' })

const FeedbackReport = z
  .object({
    total: CalibrationFigures,
    fixed_confidence: CalibrationFigures.openapi({
      description: 'The same figures, with the fixed confidence of each reason.',
    }),
    bins: z.array(CalibrationBin).openapi({
      description:
        'Verdicts by confidence, in ranges of 10 percent, lowest first. Empty ranges are omitted.',
    }),
    fixed_bins: z
      .array(CalibrationBin)
      .openapi({ description: 'The same, with the fixed confidence of each reason.' }),
    outcomes: z
      .object({
        predicted_bounces: z.int().openapi({
          description: 'Messages that bounced, to addresses whose verdict was not deliverable.',
          example: 96,
        }),
        missed_bounces: z.int().openapi({
          description: 'Messages that bounced, to addresses whose verdict was deliverable.',
          example: 14,
        }),
        kept_deliveries: z.int().openapi({
          description: 'Messages that arrived, at addresses whose verdict was deliverable.',
          example: 1_045,
        }),
        lost_deliveries: z.int().openapi({
          description: 'Messages that arrived, at addresses whose verdict was not deliverable.',
          example: 45,
        }),
      })
      .openapi({
        description: 'How the field `deliverable` of the verdicts compares with what happened.',
      }),
    reasons: z.array(z.object({ reason, ...rowFields })).openapi({
      description:
        'Figures by reason, most frequent first. Catch-all domains with enough feedback are counted by risk, such as `catch_all/low`.',
    }),
    operators: z
      .array(
        z.object({
          reason,
          operator: z.string().nullable().openapi({ example: 'google' }),
          ...rowFields,
        }),
      )
      .openapi({
        description: `By reason and operator, most verdicts first, at most ${REPORT_OPERATORS_MAX}.`,
      }),
    received: z
      .array(
        z.object({
          date: z.iso.date().openapi({ description: 'Day in UTC.', example: '2026-03-21' }),
          source: z.string().openapi({
            description:
              'Where the feedback came from: `api`, `import` (`ev feedback import`) or the provider of a source.',
            example: 'api',
          }),
          delivered: number(1_090),
          bounced: number(110),
          complained: number(2),
        }),
      )
      .openapi({
        description: `Recorded feedback by day and source, newest first, at most ${REPORT_DAYS_MAX} rows.`,
      }),
  })
  .openapi('FeedbackReport')

const FeedbackReportAnswer = successBody(FeedbackReport).openapi('FeedbackReportAnswer')

/** The values that differ from the examples of the fields, so that the figures add up. */
const REPORT_EXAMPLE = {
  data: {
    fixed_confidence: { predicted: 0.902, calibration_error: 0.049 },
    bins: [
      { count: 80, predicted: 0.41, observed: 0.4 },
      { count: 1_120, predicted: 0.981, observed: 0.99 },
    ],
    fixed_bins: [{ predicted: 0.902 }],
  },
}

/** 1,000 items with texts of 1,000 characters. */
const FEEDBACK_BODY_MAX = 2 * 1024 * 1024
/** An item with all fields has eight values; the rest is for requests that are told their length. */
const FEEDBACK_VALUES_MAX = 16 * FEEDBACK_ITEMS_MAX

/** Routes of feedback. */
export function feedbackRoutes(service: FeedbackDeps) {
  const submit = route(service, 'POST /v1/feedback', {
    id: 'submitFeedback',
    summary: 'Report bounces, deliveries and complaints',
    description:
      "Verifications of your account use the feedback from then on. You can send an item twice: the copy is ignored. Invalid items are listed in `rejected`, and the others are recorded. If the plan can't store all new items, none is recorded.",
    scope: 'feedback:write',
    idempotent: true,
    body: {
      schema: FeedbackRequest,
      example: FEEDBACK_REQUEST_EXAMPLE,
      max: FEEDBACK_BODY_MAX,
      valuesMax: FEEDBACK_VALUES_MAX,
    },
    answer: json(FeedbackAnswer, 'The numbers of recorded, repeated and rejected items'),
    errors: ['stored_rows_exceeded'],
  })
  const report = route(service, 'GET /v1/feedback/report', {
    id: 'getFeedbackReport',
    summary: 'Compare confidence with outcomes',
    description:
      'Compares your verdicts with the bounces and deliveries that you reported: their confidence, the share of correct verdicts, and the bounces they predicted. Empty in the sandbox.',
    scope: 'feedback:read',
    answer: json(FeedbackReportAnswer, 'The report', REPORT_EXAMPLE),
  })
  return newRouter()
    .handle(report, async c => {
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
    .handle(submit, async c => {
      const { account, plan } = c.get('caller')
      const items = c.req.valid('json').items.map(toInput)
      const submission = { accountId: account.id, plan, source: 'api', items }
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

const toInput = ({ email, enhanced_code, occurred_at, permanent, ...item }: Item) => ({
  ...item,
  isPermanent: permanent,
  address: email,
  enhancedCode: enhanced_code,
  occurredAt: occurred_at === undefined ? null : Date.parse(occurred_at),
})

/** SendGrid sends up to 768 KB, Amazon SNS 256 KB, and SparkPost about 1,000 events of 2 KB. */
const PROVIDER_BODY_MAX = 4 * 1024 * 1024
/** 1,000 events of about 50 values each, with their nested objects. */
const PROVIDER_VALUES_MAX = 200_000

/** The route of requests of email providers, which have no API key. */
export function providerFeedbackRoutes(service: FeedbackDeps) {
  const { database, clock, metrics, secretBox, transport, settings } = service
  const services = {
    database,
    clock,
    secretBox,
    metrics,
    certificates: new SnsCertificates(),
    getPlan: async (accountId: string) =>
      findPlan(settings.plans, (await findAccount(database, accountId))?.plan ?? ''),
    getDocument: (url: string) => transport.get(url),
    bindToken: bindToken(service),
  }
  const receive = createRoute({
    method: 'post',
    path: '/v1/feedback/{provider}/{id}',
    operationId: 'receiveFeedback',
    summary: 'Receive events of an email provider',
    description:
      'The URL of a feedback source. Your email provider calls it: Amazon SES (through Amazon SNS), SendGrid, Mailgun, Postmark or SparkPost, each with its own format and authentication. Bounces, deliveries and complaints are recorded; other events and copies are ignored. When the account has reached the storage limit of its plan, the response is 429, and the provider retries.',
    tags: ['Feedback'],
    security: [],
    middleware: [readEvents(service)],
    request: {
      params: providerParams,
      body: {
        content: {
          // The providers define the bodies, and `receiveFeedback` reads them.
          'application/json': { schema: z.unknown(), example: EVENTS_EXAMPLE },
          // Amazon SNS.
          'text/plain': { schema: z.unknown(), example: JSON.stringify(SNS_EXAMPLE) },
          // Legacy webhooks of Mailgun.
          'application/x-www-form-urlencoded': { schema: z.unknown(), example: FORM_EXAMPLE },
          'multipart/form-data': { schema: z.unknown(), example: FORM_EXAMPLE },
        },
      },
    },
    responses: {
      200: {
        ...json(FeedbackAnswer, 'The numbers of recorded and repeated events'),
        headers: responseHeaders(),
      },
      ...errorResponses([...ANY_OPERATION, ...ERRORS]),
    } as { readonly 200: ReturnType<typeof json<typeof FeedbackAnswer>> },
  } as const)
  return newRouter().handle(receive, async c => {
    const data = await receiveFeedback(services, c.get('feedbackSource'), {
      header: name => c.req.header(name),
      bytes: c.get('body'),
      body: c.get('json'),
    })
    service.feedback.refresh()
    return c.json({ success: true as const, data: { ...data, rejected: [...data.rejected] } }, 200)
  })
}

const ERRORS = [
  ...(['authentication_error', 'not_found', 'request_timeout', 'payload_too_large'] as const),
  ...(['unsupported_media_type', 'invalid_json', 'stored_rows_exceeded'] as const),
] as const

/** An event of Postmark. */
const EVENTS_EXAMPLE = {
  RecordType: 'Delivery',
  MessageID: '883953f4-6105-42a2-a16a-77a8eac79483',
  Recipient: 'bob@example.com',
  DeliveredAt: '2026-03-21T10:30:00Z',
}

/** A message of Amazon SNS, shortened. */
const SNS_EXAMPLE = {
  Type: 'Notification',
  TopicArn: 'arn:aws:sns:us-east-1:123456789012:ses-feedback',
  Message: '{"eventType":"Delivery"}',
  SignatureVersion: '1',
  Signature: 'EXAMPLE',
}

/** A form of Mailgun. */
const FORM_EXAMPLE = {
  event: 'delivered',
  recipient: 'bob@example.com',
  timestamp: '1780315140',
  token: '651869375b9df3c98fc15c4889b102119add1235c38fc92824',
  signature: 'EXAMPLE',
}

const providerParams = z.object({
  provider: z.enum(PROVIDER_NAMES).openapi({ description: 'The email provider.' }),
  id: idField('ID of the source.', 'fbs_8f3a2c1d7b5e4096a1c3'),
})

/** Reads the body if the path is that of a source. */
function readEvents(service: FeedbackDeps): MiddlewareHandler<Env> {
  const rule = {
    bytesMax: PROVIDER_BODY_MAX,
    kind: 'stream',
    valuesMax: PROVIDER_VALUES_MAX,
    // A provider cannot mend its events: they would be lost.
    mayRepeatFields: true,
  } as const
  const validate = createValidator({ params: providerParams })
  return async (c, next) => {
    const { provider, id } = c.req.param() as z.output<typeof providerParams>
    c.set('feedbackSource', await getSource(service, { provider, id }))
    // Some HTTP clients send a password only after this challenge.
    if (PROVIDERS[provider].key === null) c.set('challenge', BASIC_CHALLENGE)
    checkBodyHeaders(c, rule)
    await (PROVIDERS[provider].sendsForms ? readJsonOrForm : readJson)(c, rule)
    validate(c)
    await next()
  }
}

/** Stores tokens as Idempotency-Keys of their source, which are kept for `REPLAY_MS`. */
function bindToken({ database, clock, secretBox }: FeedbackDeps) {
  return async (sourceId: string, token: string, fingerprint: string): Promise<boolean> => {
    const since = clock.now() - REPLAY_MS
    const row = {
      key_id: sourceId,
      idempotency_key: token,
      fingerprint,
      status: 200,
      answer: secretBox.encrypt(''),
      created_at: clock.now(),
    }
    if (await write(database, trx => saveResponse(trx, row, since))) return true
    const stored = await findResponse(database, { keyId: sourceId, key: token, since })
    return stored?.fingerprint === fingerprint
  }
}
